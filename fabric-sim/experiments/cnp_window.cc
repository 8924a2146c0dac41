// The window over which switches count CNPs: failures of too short and too long a window. First
// seven paths are congested alike, then one more than the others. Rates count in the second half of
// either phase. The policy that passes on every notification has no window and runs once.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"

namespace cepheus::sim {
namespace cnp_window {

using namespace std::chrono_literals;

// Seven equally congested paths for a while, then three more unicasts on the first one.
std::vector<FlowPlan> plan(wire::Duration change) {
  std::vector<FlowPlan> flows = {{"multicast", 0, {1, 2, 3, 4, 5, 6, 7}}};
  for (std::size_t i = 1; i <= 7; ++i) flows.push_back({"unicast", i % 7 + 1, {i}});
  for (const std::size_t from : {3, 4, 5}) flows.push_back({"more", from, {1}, change});
  return flows;
}

void run(const ExperimentOptions& options, Report& report) {
  std::vector<wire::Duration> windows = {50us, 5ms, 25ms};
  if (!options.quick) windows = {50us, 150us, 500us, 1500us, 5ms, 25ms, 50ms};
  const wire::Duration change = options.quick ? 100ms : 150ms;
  for (CnpFilter filter : {kAllCnps, kWorstPath, kTmcf}) {
    const bool is_all = filter.policy == net::CnpPolicy::kAll;  // it has no window
    for (const wire::Duration window : is_all ? std::vector{filter.window} : windows) {
      const std::string name = filter.name;
      report.progress(name + ", " + std::to_string(window.count() / 1000) + " us");
      filter.window = window;
      Testbed testbed = congested_testbed(two_racks_of_four(), filter, options);
      const FlowRates rates = measure_flows(testbed, plan(change), 2 * change, 5ms);
      const double x = microseconds(window);
      report.add("alike, " + name, x, rates.mean(0, change / 2, change), "Gb/s",
                 {.expected = is_all ? 12.5 : 50});
      const std::optional<double> worse = is_all ? std::nullopt : std::optional(20.0);
      report.add("one worse, " + name, x, rates.mean(0, change + change / 2, 2 * change), "Gb/s",
                 {.expected = worse});
    }
  }
}

}  // namespace cnp_window

const Experiment kCnpWindow = {"cnp-window",
                               "a multicast's rate by the switches' window for notifications",
                               "our own",
                               "90 s quick, 4 min",
                               "window, us",
                               "alike, worst-path",
                               "near its half by any window: it lasts for 16 notifications",
                               cnp_window::run};

}  // namespace cepheus::sim
