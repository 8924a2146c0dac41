// HPL's broadcasts on grids of n times n nodes.
#include <algorithm>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/gleam_hpl.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

constexpr std::size_t kPorts = 64;
constexpr std::size_t kHostsPerPod = 1024;
constexpr double kGigabits = 200;
// What 200 Gb/s carry in half of the paper's 5.17 ms.
constexpr std::uint64_t kBytes = 64'600'000;

enum class Placement { kConsecutive, kRandom };

struct Case {
  std::size_t n = 0;
  std::uint64_t bytes = 0;  // fewer than kBytes: times are scaled up
  std::optional<double> paper_gleam, paper_rival;
};

double milliseconds(const HplTimes& times, const Case& c) {
  return microseconds(times.panel + times.swap) / 1000 * static_cast<double>(kBytes) /
         static_cast<double>(c.bytes);
}

void measure(const Case& c, Placement placement, unsigned seeds, Report& report) {
  const bool is_random = placement == Placement::kRandom;
  const std::size_t nodes = c.n * c.n;
  const std::size_t pods = is_random ? 16 : std::max<std::size_t>(2, nodes / kHostsPerPod);
  const net::Topology fabric = net::fat_tree(kPorts, paper_link(kGigabits), pods);
  const Grid grid = grid_of(c.n);
  std::vector<double> gleam, rival, saved;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    report.say(std::to_string(c.n) + " x " + std::to_string(c.n) + ", seed " +
               std::to_string(seed));
    TestbedConfig config;
    config.seed = seed;
    config.memory = c.bytes;
    config.max_qps = 1024;
    const auto hosts =
        is_random ? random_hosts(nodes, fabric.hosts.size(), seed) : first_hosts(nodes);
    const net::Topology used = with_hosts(fabric, hosts);
    Testbed first(used, config);
    gleam.push_back(milliseconds(time_of_gleam(first, grid.rows, grid.columns, c.bytes), c));
    Testbed second(used, config);
    rival.push_back(
        milliseconds(time_of_ring_and_long(second, grid.rows, grid.columns, c.bytes), c));
    saved.push_back(100 * (1 - gleam.back() / rival.back()));
  }
  const auto n = static_cast<double>(c.n);
  report.add("gleam", n, gleam, "ms", c.paper_gleam);
  report.add("ring and long", n, rival, "ms", c.paper_rival);
  std::optional<double> paper_saved;
  if (c.paper_gleam && c.paper_rival) paper_saved = 100 * (1 - *c.paper_gleam / *c.paper_rival);
  report.add("saved", n, saved, "%", paper_saved);
}

void run(Placement placement, const ExperimentOptions& options, Report& report) {
  const bool is_random = placement == Placement::kRandom;
  measure({8, kBytes, 5.17, 13.7}, placement, options.seeds_or(is_random ? 1 : 3, 5), report);
  const unsigned seeds = options.seeds_or(1, 3);
  measure({16, kBytes / 2, 5.17, {}}, placement, seeds, report);
  if (!options.quick) measure({32, kBytes / 8, 5.17, {}}, placement, seeds, report);
}

void run_consecutive(const ExperimentOptions& options, Report& report) {
  run(Placement::kConsecutive, options, report);
}

void run_random(const ExperimentOptions& options, Report& report) {
  run(Placement::kRandom, options, report);
}

constexpr PlotAxes kAxes = {"n", "ms", true, false, "ms"};

}  // namespace

const Experiment kGleamFig14 = {
    "gleam-fig14",
    "HPL's panel broadcast and row swap on n x n nodes: Gleam beside increasing ring and long",
    "Gleam fig. 14",
    "1 min quick, 10 min",
    kAxes,
    "A fat-tree of 64-port switches with 1024 hosts a pod, 200 Gb/s and 1 us a link, no loss. "
    "Nodes lie row by row on consecutive hosts. The volume is not in the paper: 64.6 MB each, "
    "which is what its 5.17 ms carry. From 16 x 16 on less is simulated and the time scaled. "
    "Links alone would give ring and long 1.75 times Gleam's time at 8 x 8, and 2 times at any "
    "size: what is more are flows that hash to one link, of which a larger grid has more. How "
    "many a grid of 8 has is luck, as the range shows.",
    run_consecutive};

const Experiment kGleamFig14Random = {
    "gleam-fig14-random",
    "the same with the nodes at random places",
    "Gleam fig. 14",
    "1 min quick, 10 min",
    kAxes,
    "As gleam-fig14, in 16 pods of 1024 hosts; the paper does not say how its nodes lie. Here "
    "the trees of several groups meet on links, too: a switch counts the groups that it knows, "
    "not their load nor what other switches send into the same link.",
    run_random};

}  // namespace cepheus::sim
