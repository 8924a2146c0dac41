// The gain of choosing the trunk that the fewest groups use for a tree, instead of one by hash.
// HPL's broadcasts run on grids of nodes in a fat-tree of 64-port switches at 200 Gb/s, with the
// rule fewest_groups on and off. Nodes are placed row by row, or at random. Each seed has its own
// group numbers, because they enter the hash.
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/gleam_hpl.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace ablation_hash {

constexpr std::size_t kPorts = 64, kPods = 16;
constexpr double kGigabits = 200;
constexpr std::uint64_t kBytes = 8'000'000;
// More than all groups of a grid: each seed has its own group numbers.
constexpr std::uint32_t kGroupsOfASeed = 1000;

double milliseconds(std::size_t n, bool by_groups, bool is_random, unsigned seed) {
  net::Topology fabric = net::fat_tree(kPorts, paper_link(kGigabits), is_random ? kPods : 2);
  for (net::SwitchSpec& node : fabric.switches) node.config.rules.fewest_groups = by_groups;
  const std::size_t nodes = n * n;
  const auto hosts =
      is_random ? random_hosts(nodes, fabric.hosts.size(), seed) : first_hosts(nodes);
  Testbed testbed(with_hosts(fabric, hosts), {.seed = seed, .max_qps = 1024, .memory = kBytes});
  const Grid grid = grid_of(n);
  const HplTimes times =
      time_of_gleam(testbed, grid.rows, grid.columns, kBytes, 1 + kGroupsOfASeed * (seed - 1));
  return microseconds(times.panel + times.swap) / 1000;
}

void run(const ExperimentOptions& options, Report& report) {
  const unsigned seeds = options.seeds_or(3, 5);
  std::vector<std::size_t> sizes = {8, 16};
  if (!options.quick) sizes.push_back(32);
  for (const bool is_random : {false, true}) {
    const std::string where = is_random ? ", random places" : ", row by row";
    for (const std::size_t n : sizes) {
      std::vector<double> fewest, hashed, longer;
      for (unsigned seed = 1; seed <= seeds; ++seed) {
        report.progress(std::to_string(n) + " x " + std::to_string(n) + where + ", seed " +
                        std::to_string(seed));
        fewest.push_back(milliseconds(n, true, is_random, seed));
        hashed.push_back(milliseconds(n, false, is_random, seed));
        longer.push_back(hashed.back() / fewest.back());
      }
      const auto x = static_cast<double>(n);
      report.add("fewest groups" + where, x, fewest, "ms");
      report.add("hash" + where, x, hashed, "ms");
      report.add("longer by hash" + where, x, longer, "times");
    }
  }
}

}  // namespace ablation_hash

const Experiment kAblationHash = {"ablation-hash",
                                  "the trunk with the fewest groups against a trunk by hash",
                                  "Cepheus III-C",
                                  "1 min quick, 10 min",
                                  "n",
                                  "longer by hash, row by row",
                                  "a hash costs a third or more; nothing at random places",
                                  ablation_hash::run};

}  // namespace cepheus::sim
