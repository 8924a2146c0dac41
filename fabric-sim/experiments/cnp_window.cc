// What switches count notifications over: where too short and too long a window fails.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"

namespace cepheus::sim {
namespace cnp_window {

using namespace std::chrono_literals;

// Seven paths congested alike for a while, then the first one by three unicasts more.
std::vector<FlowPlan> plan(wire::Duration change) {
  std::vector<FlowPlan> flows = {{"multicast", 0, {1, 2, 3, 4, 5, 6, 7}}};
  for (std::size_t i = 1; i <= 7; ++i) flows.push_back({"unicast", i % 7 + 1, {i}});
  for (const std::size_t from : {3, 4, 5}) flows.push_back({"more", from, {1}, change});
  return flows;
}

void run(const ExperimentOptions& options, Report& report) {
  std::vector<wire::Duration> windows = {50us, 500us, 5ms, 50ms};
  if (!options.quick) windows = {50us, 150us, 500us, 1500us, 5ms, 15ms, 50ms};
  const wire::Duration change = options.quick ? 100ms : 150ms;
  for (CnpFilter filter : {kWorstPath, kTmcf}) {
    for (const wire::Duration window : windows) {
      const std::string name = filter.name;
      report.say(name + ", " + std::to_string(window.count() / 1000) + " us");
      CongestedFabric fabric;
      fabric.topology = two_racks_of_four();
      filter.window = window;
      Testbed testbed = congested_testbed(fabric, filter, options);
      const FlowRates rates = measure_flows(testbed, plan(change), 2 * change, 5ms);
      const double x = microseconds(window);
      report.add("alike, " + name, x, rates.mean(0, change / 2, change), "Gb/s", {.expected = 50});
      report.add("one worse, " + name, x, rates.mean(0, change + change / 2, 2 * change), "Gb/s",
                 {.expected = 20});
    }
  }
}

}  // namespace cnp_window

const Experiment kCnpWindow = {
    "cnp-window",
    "a multicast's rate by the window that switches count notifications over",
    "our own",
    "90 s quick, 4 min",
    "window, us",
    "alike, worst-path",
    "short windows leave a multicast too little",
    "Two racks of four hosts; the paper's four links of 100 Gb/s from each rack to a third switch "
    "are one of 400 here, so that no hash decides. 500 ns a link, MTU 4096; queues mark from 50 "
    "to 500 KB, with up to 1 %. A multicast to seven hosts, each of whose links carries a "
    "unicast, too (alike, share 50); then three unicasts more into the first (one worse, share "
    "20). 150 ms each (100 if quick), of which the second half counts. In a window that is short "
    "against the time between two of a path's notifications, a millisecond here, there is one of "
    "any path or none: worst-path has forgotten its choice by the next one, lets nearly all pass, "
    "and leaves the multicast what all notifications leave. tmcf's slots of some milliseconds "
    "last as long as a queue stays long: presumably the path that was worst in the last one has "
    "just been relieved, what comes from others is dropped, and the multicast gets more than its "
    "share. Slots of 20 ms and more average over that; the price is that a new worst path is "
    "heard of so much later.",
    cnp_window::run};

}  // namespace cepheus::sim
