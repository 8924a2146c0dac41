// A multicast with more and more congested paths: what it gets by which notifications it hears.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr double kLink = 100;  // Gb/s

// A multicast from the first host to all others, and a unicast into each of the first `congested` of
// them, from the next one, so that no other link is shared.
std::vector<FlowPlan> plan(std::size_t congested) {
  std::vector<FlowPlan> flows = {{"multicast", 0, {1, 2, 3, 4, 5, 6, 7}}};
  for (std::size_t i = 1; i <= congested; ++i) {
    const std::size_t next = i % 7 + 1;
    flows.push_back({"unicast", next, {i}});
  }
  return flows;
}

void measure(const CnpFilter& filter, const std::string& suffix, std::size_t congested,
             const ExperimentOptions& options, Report& report) {
  report.say(filter.name + suffix + ", " + std::to_string(congested) + " congested paths");
  CongestedFabric fabric;
  fabric.topology = two_racks_of_four();
  const wire::Duration until = options.quick ? 100ms : 200ms;
  const wire::Duration settled = until / 2;
  Testbed testbed = congested_testbed(fabric, filter.policy, options);
  const FlowRates rates = measure_flows(testbed, plan(congested), until, 5ms);
  double unicasts = 0;
  for (std::size_t f = 1; f <= congested; ++f) unicasts += rates.mean(f, settled, until);
  const auto k = static_cast<double>(congested);
  const bool is_all = filter.policy == net::CnpPolicy::kAll;
  const double share = is_all ? kLink / (k + 1) : kLink / 2;
  const std::string name = filter.name + suffix;
  report.add("multicast, " + name, k, rates.mean(0, settled, until), "Gb/s", share);
  report.add("unicasts, " + name, k, unicasts / k, "Gb/s", kLink - share);
  const auto per_ms = [&](std::uint64_t n) { return static_cast<double>(n) / milliseconds(until); };
  report.add("marked, " + name, k, per_ms(testbed.totals().marked), "frames/ms");
  // Were it 1, as the theory says: notifications that the multicast hears for each of a unicast's.
  const auto heard = [&](std::size_t host) {
    const rnic::Counters& c = testbed.network().host(host).nic().counters();
    return static_cast<double>(c[rnic::Counter::kRxCnp] + c[rnic::Counter::kRxCeEcho]);
  };
  double by_unicasts = 0;
  for (std::size_t h = 1; h < testbed.network().host_count(); ++h) by_unicasts += heard(h);
  report.add("notified, " + name, k, heard(0) / (by_unicasts / k), "times a unicast");
}

void run(const ExperimentOptions& options, Report& report) {
  const std::vector<std::size_t> paths = options.quick
                                             ? std::vector<std::size_t>{1, 4, 7}
                                             : std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7};
  for (const CnpFilter& filter : kCnpFilters) {
    for (const std::size_t k : paths) measure(filter, "", k, options, report);
  }
  if (options.congestion != ExperimentOptions().congestion) return;
  ExperimentOptions steep = options;
  steep.congestion += ",additive_mbps=400,hyper_mbps=2000";
  for (const std::size_t k : paths) measure(kCnpFilters[0], ", steep", k, steep, report);
}

}  // namespace

const Experiment kMcRdmaFig6 = {
    "mcrdma-fig6",
    "a multicast to seven hosts, of whose links more and more carry a unicast as well",
    "MC-RDMA fig. 6",
    "TIME",
    {"congested paths", "Gb/s", false, false, "Gb/s"},
    "METHOD",
    run};

}  // namespace cepheus::sim
