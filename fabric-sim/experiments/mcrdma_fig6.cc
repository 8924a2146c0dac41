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

void measure(const CnpFilter& filter, std::size_t congested, const ExperimentOptions& options,
             Report& report) {
  CongestedFabric fabric;
  fabric.topology = two_racks_of_four();
  const wire::Duration until = options.quick ? 60ms : 100ms;
  const wire::Duration settled = until / 2;
  std::vector<double> multicast, unicasts, marks, notified;
  for (unsigned seed = 1; seed <= options.seeds_or(1, 1); ++seed) {
    Testbed testbed = congested_testbed(fabric, filter.policy, options, seed);
    const FlowRates rates = measure_flows(testbed, plan(congested), until, 5ms);
    multicast.push_back(rates.mean(0, settled, until));
    double sum = 0;
    for (std::size_t f = 1; f <= congested; ++f) sum += rates.mean(f, settled, until);
    unicasts.push_back(sum / static_cast<double>(congested));
    const Testbed::Totals totals = testbed.totals();
    marks.push_back(static_cast<double>(totals.marked) / milliseconds(until));
    notified.push_back(static_cast<double>(totals.notified) / milliseconds(until));
  }
  const auto k = static_cast<double>(congested);
  const bool is_all = filter.policy == net::CnpPolicy::kAll;
  const double share = is_all ? kLink / (k + 1) : kLink / 2;
  const std::string name = filter.name;
  report.add("multicast, " + name, k, multicast, "Gb/s", share);
  report.add("unicasts, " + name, k, unicasts, "Gb/s", kLink - share);
  report.add("marked, " + name, k, marks, "frames/ms");
  report.add("notified, " + name, k, notified, "senders/ms");
}

void run(const ExperimentOptions& options, Report& report) {
  for (const CnpFilter& filter : kCnpFilters) {
    for (std::size_t k = 1; k <= 7; ++k) {
      if (options.quick && k != 1 && k != 4 && k != 7) continue;
      report.say(std::string(filter.name) + ", " + std::to_string(k) + " congested paths");
      measure(filter, k, options, report);
    }
  }
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
