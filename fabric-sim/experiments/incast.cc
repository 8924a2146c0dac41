// Eight multicasts and eight unicasts into one rack. Links are lossy, lossless, or lossless with
// halted groups; policies are compared with no congestion control. Rates count in the second half
// of the run. Expected: each of the five flows into a host gets a fifth of its link.
#include <algorithm>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace incast {

using namespace std::chrono_literals;

constexpr std::size_t kRack = 8;
constexpr wire::Bytes kBuffer =
    32 << 20;  // of a switch  // hosts of a rack; the last of three racks receives

// Group g goes from a host of the first rack to four of the last, unicast u from one of the second
// to one of the last: each host there receives four multicasts and a unicast.
std::vector<FlowPlan> plan() {
  const auto receiver = [](std::size_t i) { return 2 * kRack + i % kRack; };
  std::vector<FlowPlan> flows;
  for (std::size_t g = 0; g < kRack; ++g) {
    flows.push_back({"group", g, {receiver(g), receiver(g + 1), receiver(g + 2), receiver(g + 3)}});
  }
  for (std::size_t u = 0; u < kRack; ++u) flows.push_back({"unicast", kRack + u, {receiver(u)}});
  return flows;
}

enum class Links { kLossy, kLossless, kHalting };

// Switches pause senders before their buffers overflow.
void make_lossless(net::Topology& topology, bool group_halt) {
  for (net::HostSpec& host : topology.hosts) host.up.pfc.on = host.down.pfc.on = true;
  for (net::TrunkSpec& trunk : topology.trunks) trunk.ab.pfc.on = trunk.ba.pfc.on = true;
  for (net::SwitchSpec& node : topology.switches) {
    node.config.buffer.bytes = kBuffer;
    node.config.buffer.group_halt = group_halt;
  }
}

void measure(const std::string& name, const CnpFilter& filter, Links links,
             const ExperimentOptions& options, Report& report) {
  report.progress(name);
  net::Topology fabric = net::leaf_spine(3, 1, kRack, paper_link());
  for (net::TrunkSpec& trunk : fabric.trunks) {
    trunk.ab.rate.bits_per_second *= kRack;
    trunk.ba.rate.bits_per_second *= kRack;
  }
  const bool lossless = links != Links::kLossy;
  const bool halting = links == Links::kHalting;
  if (lossless) make_lossless(fabric, halting);
  const wire::Duration until = options.quick ? 40ms : 100ms;
  Testbed testbed = congested_testbed(fabric, filter, options);
  const std::vector<FlowPlan> flows = plan();
  const FlowRates rates = measure_flows(testbed, flows, until, 5ms);
  std::vector<double> shares;
  double groups = 0, unicasts = 0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    shares.push_back(rates.mean(f, until / 2, until));
    (f < kRack ? groups : unicasts) += shares.back();
  }
  report.add("a group, " + name, kRack, groups / kRack, "Gb/s", {.expected = 20});
  report.add("a unicast, " + name, kRack, unicasts / kRack, "Gb/s", {.expected = 20});
  // Throughput of all receivers together: each copy counts.
  report.add("received, " + name, kRack, 4 * groups + unicasts, "Gb/s in all", {.expected = 800});
  report.add("fairness, " + name, kRack, fairness(shares), "Jain's index", {.expected = 1});
  std::uint64_t longest = 0;
  for (const auto& cable : testbed.network().cables()) {
    longest = std::max(longest, cable->queue_counters().high_water);
  }
  report.add("longest queue, " + name, kRack, static_cast<double>(longest) / 1e6, "MB");
  if (lossless) {
    std::uint64_t pauses = 0;
    for (const auto& node : testbed.network().switches()) {
      pauses += node->pause_totals().pauses_sent;
    }
    report.add("pauses, " + name, kRack, static_cast<double>(pauses) / milliseconds(until),
               "pauses/ms");
  }
  if (halting) {
    net::HaltCounters halts;
    for (const auto& node : testbed.network().switches()) {
      const net::HaltCounters at = node->halt_totals(testbed.simulator().now());
      halts.halts += at.halts;
      halts.time += at.time;
    }
    report.add("halts, " + name, kRack, static_cast<double>(halts.halts) / milliseconds(until),
               "halts/ms");
    report.add("a group halted, " + name, kRack,
               100 * milliseconds(halts.time) / milliseconds(until) / kRack, "% of the time");
  }
  const Testbed::Totals totals = testbed.totals();
  report.add("marked, " + name, kRack, static_cast<double>(totals.marked) / milliseconds(until),
             "frames/ms");
  report.add("time-outs, " + name, kRack, static_cast<double>(totals.timeouts), "time-outs");
}

void run(const ExperimentOptions& options, Report& report) {
  ExperimentOptions off = options;
  off.congestion = "off";
  for (const Links links : {Links::kLossy, Links::kLossless}) {
    const std::string suffix = links == Links::kLossless ? ", lossless" : "";
    measure("no control" + suffix, kAllCnps, links, off, report);
    for (const CnpFilter& filter : kCnpFilters) {
      measure(filter.name + suffix, filter, links, options, report);
    }
  }
  measure("no control, group halt", kAllCnps, Links::kHalting, off, report);
  measure("worst-path, group halt", kWorstPath, Links::kHalting, options, report);
}

}  // namespace incast

const Experiment kIncast = {"incast",
                            "eight multicasts and eight unicasts into one rack",
                            "our own",
                            "30 s quick, 90 s",
                            "groups",
                            "fairness, worst-path",
                            "fair; all notifications leave multicasts too little",
                            incast::run};

}  // namespace cepheus::sim
