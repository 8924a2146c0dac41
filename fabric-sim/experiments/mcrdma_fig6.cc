// A multicast with a growing number of congested paths: its rate, by the CNP policy. Unicasts are
// placed so that no other link is shared. Rates count in the last half of 100 ms. "notified" is the
// multicast's notifications for each one of a unicast: theory takes it for 1. The steeper growth of
// rates runs only with the default congestion control.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"

namespace cepheus::sim {
namespace mcrdma_fig6 {

using namespace std::chrono_literals;

constexpr double kLink = 100;  // Gb/s
constexpr wire::Duration kUntil = 100ms, kSteady = 50ms;
// Ten times the published growth after fast recovery.
constexpr const char* kSteep = ",additive_mbps=400,hyper_mbps=2000";

// A multicast from the first host to all others, and a unicast into each of the first `congested`
// of them, from the next host, so that no other link is shared.
std::vector<FlowPlan> plan(std::size_t congested) {
  std::vector<FlowPlan> flows = {{"multicast", 0, {1, 2, 3, 4, 5, 6, 7}}};
  for (std::size_t i = 1; i <= congested; ++i) {
    const std::size_t next = i % 7 + 1;
    flows.push_back({"unicast", next, {i}});
  }
  return flows;
}

// Of one run; its seed determines the marks.
struct Shares {
  double multicast, unicasts;  // Gb/s; of unicasts the mean
  double marked;               // frames a millisecond
  double notified;             // CNPs that the multicast receives for each CNP of a unicast
};

Shares shares_of(const CnpFilter& filter, std::size_t congested, std::uint64_t seed,
                 const ExperimentOptions& options) {
  net::Topology fabric = two_racks_of_four();
  fabric.mtu = 1024;
  Testbed testbed = congested_testbed(fabric, filter, options, {.seed = seed});
  const FlowRates rates =
      measure_flows(testbed, with_groups_of(filter, plan(congested)), kUntil, 5ms);
  double unicasts = 0;
  for (std::size_t f = 1; f <= congested; ++f) unicasts += rates.mean(f, kSteady, kUntil);
  const auto notifications_at = [&](std::size_t host) {
    const rnic::Counters& c = testbed.network().host(host).nic().counters();
    return static_cast<double>(c[rnic::Counter::kRxCnp] + c[rnic::Counter::kRxCeEcho]);
  };
  double by_unicasts = 0;
  for (std::size_t h = 1; h < testbed.network().host_count(); ++h)
    by_unicasts += notifications_at(h);
  const auto k = static_cast<double>(congested);
  return {rates.mean(0, kSteady, kUntil), unicasts / k,
          static_cast<double>(testbed.totals().marked) / milliseconds(kUntil),
          notifications_at(0) / (by_unicasts / k)};
}

void measure(const CnpFilter& filter, const std::string& suffix, std::size_t congested,
             const ExperimentOptions& options, Report& report) {
  std::vector<Shares> runs;
  for (unsigned seed = 1; seed <= options.seeds_or(1, 1); ++seed) {
    report.progress(filter.name + suffix + ", " + std::to_string(congested) +
                    " congested paths, seed " + std::to_string(seed));
    runs.push_back(shares_of(filter, congested, seed, options));
  }
  const auto k = static_cast<double>(congested);
  const bool is_all = filter.policy == net::CnpPolicy::kAll;
  const double share = is_all ? kLink / (k + 1) : kLink / 2;
  const std::string name = filter.name + suffix;
  report.add("multicast, " + name, k, each(runs, &Shares::multicast), "Gb/s", {.expected = share});
  report.add("unicasts, " + name, k, each(runs, &Shares::unicasts), "Gb/s",
             {.expected = kLink - share});
  report.add("marked, " + name, k, each(runs, &Shares::marked), "frames/ms");
  // If it were 1, as in the theory.
  report.add("notified, " + name, k, each(runs, &Shares::notified), "times a unicast");
}

void run(const ExperimentOptions& options, Report& report) {
  const std::vector<std::size_t> few = {1, 4, 7};
  const auto paths = options.quick ? few : std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7};
  for (const CnpFilter& filter : kCnpFilters) {
    for (const std::size_t k : paths) measure(filter, "", k, options, report);
  }
  for (const CnpFilter& filter : {kSendersAll, kSendersWorstPath}) {
    for (const std::size_t k : few) measure(filter, "", k, options, report);
  }
  if (options.congestion != ExperimentOptions().congestion) return;
  ExperimentOptions steep = options;
  steep.congestion += kSteep;
  for (const CnpFilter& filter : kCnpFilters) {
    for (const std::size_t k : paths) measure(filter, ", steep", k, steep, report);
  }
}

}  // namespace mcrdma_fig6

const Experiment kMcRdmaFig6 = {
    "mcrdma-fig6",
    "a multicast to seven hosts, with unicasts on more and more of their links",
    "MC-RDMA fig. 6",
    "2 min quick, 5 min",
    "congested paths",
    "multicast, all",
    "a quarter above theory at seven paths",
    mcrdma_fig6::run};

}  // namespace cepheus::sim
