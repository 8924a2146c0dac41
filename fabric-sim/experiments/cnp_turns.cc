// Roots that take turns, and receivers that are congested unequally: the notifications of one of
// them slow the roots down. The multicast's length of a turn is varied, and how many hosts are
// congested besides the worst one. Trunks and the unicasts' sources are fast enough to be no limit.
// Rates count in the second half of a run.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace cnp_turns {

using namespace std::chrono_literals;

constexpr std::size_t kRack = 8;
constexpr std::size_t kMembers = 8;

// The first rack's hosts take turns. Three unicasts from the second rack go to host 1, and one to
// each of the next `lesser` hosts.
std::vector<FlowPlan> plan(std::uint32_t turn, std::size_t lesser) {
  std::vector<FlowPlan> flows = {{.name = "multicast", .from = 0, .to = {}, .turn = turn}};
  for (std::size_t i = 1; i < kMembers; ++i) flows[0].to.push_back(i);
  for (int i = 0; i < 3; ++i) flows.push_back({"worst", kRack, {1}});
  for (std::size_t i = 0; i < lesser; ++i) flows.push_back({"lesser", kRack + 1 + i, {2 + i}});
  return flows;
}

void measure(const CnpFilter& filter, std::uint32_t turn, std::size_t lesser,
             const ExperimentOptions& options, Report& report) {
  const std::string name = std::to_string(1 + lesser) + " congested, " + filter.name;
  report.progress(name + ", turns of " + std::to_string(turn >> 10) + " KiB");
  const wire::Duration until = options.quick ? 100ms : 200ms;
  std::vector<double> groups, worst, others;
  for (unsigned seed = 1; seed <= options.seeds_or(1, 3); ++seed) {
    net::Topology fabric = net::leaf_spine(2, 1, kRack, paper_link());
    for (net::TrunkSpec& trunk : fabric.trunks) {
      trunk.ab.rate.bits_per_second *= kRack;
      trunk.ba.rate.bits_per_second *= kRack;
    }
    for (std::size_t h = kRack; h < fabric.hosts.size(); ++h) {
      fabric.hosts[h].up.rate.bits_per_second *= 4;
    }
    Testbed testbed = congested_testbed(fabric, filter, options,
                                        {.seed = seed, .memory = std::max(turn, 1u << 20)});
    const FlowRates rates = measure_flows(testbed, plan(turn, lesser), until, 5ms);
    const auto of = [&](std::size_t flow) { return rates.mean(flow, until / 2, until); };
    groups.push_back(of(0));
    worst.push_back((of(1) + of(2) + of(3)) / 3);
    double sum = 0;
    for (std::size_t i = 0; i < lesser; ++i) sum += of(4 + i);
    others.push_back(sum / static_cast<double>(lesser));
  }
  const double x = turn / 1024.0;
  report.add("multicast, " + name, x, groups, "Gb/s");
  report.add("a unicast at the worst, " + name, x, worst, "Gb/s", {.expected = 25});
  report.add("a unicast elsewhere, " + name, x, others, "Gb/s");
}

void run(const ExperimentOptions& options, Report& report) {
  std::vector<std::uint32_t> turns = {128 << 10, 1 << 20, 16 << 20};
  if (!options.quick) turns = {128 << 10, 1 << 20, 4 << 20, 16 << 20};
  for (const std::size_t lesser : {1, 6}) {
    for (const CnpFilter& filter : {kAllCnps, kWorstPath, kTmcf}) {
      for (const std::uint32_t turn : turns) measure(filter, turn, lesser, options, report);
    }
  }
}

}  // namespace cnp_turns

const Experiment kCnpTurns = {
    "cnp-turns",
    "roots that take turns, beside receivers that are congested unequally",
    "our own",
    "10 s quick, 3 min",
    "turn, KiB",
    "a unicast at the worst, 7 congested, worst-path",
    "a third of its share beside turns of 16 MiB: a root speeds up while others send",
    cnp_turns::run};

}  // namespace cepheus::sim
