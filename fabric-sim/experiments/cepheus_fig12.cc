// One broadcast to 511 in a fat-tree of 1024 hosts, by size. The circulant graph runs with its best
// settings, and so do large chains. Beyond 16 MiB only chains run, because a tree takes minutes
// there; RDMC and long run at two sizes only. The paper names no sizes, so its factors stand beside
// our nearest ones.
#include <algorithm>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace cepheus_fig12 {

constexpr std::size_t kPorts = 16;
constexpr std::size_t kMembers = 512;
constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::uint64_t kMtu = 4096;

Testbed bed(std::uint64_t bytes) {
  return {with_hosts(net::fat_tree(kPorts, paper_link()), first_hosts(kMembers)),
          {.memory = bytes}};
}

double time_of_rival(const Schedule& schedule) {
  Testbed testbed = bed(schedule.bytes());
  return microseconds(time_of(testbed, schedule, first_hosts(kMembers)));
}

// As many slices as ranks, if each has at least a packet.
std::size_t slices_of(std::uint64_t bytes) {
  return std::clamp<std::size_t>(bytes / kMtu, 1, kMembers);
}

// Of a circulant graph, for its best setting.
std::vector<std::size_t> numbers_of_blocks(std::uint64_t bytes) {
  const std::size_t n = best_blocks(kMembers, bytes, paper_link().rate, kFatTreeRoundTrip);
  return n == 1 ? std::vector<std::size_t>{1} : std::vector{n / 2, n};
}

struct Paper {
  std::optional<double> chain, tree;
};

void measure(std::uint64_t bytes, const Paper& paper, Report& report) {
  const auto x = static_cast<double>(bytes);
  report.progress(std::to_string(bytes) + " bytes");
  Testbed testbed = bed(bytes);
  const MulticastTime cepheus = time_of_multicast(testbed, first_hosts(kMembers), bytes);
  const double ours = microseconds(cepheus.received);
  const double chain_us = time_of_rival(chain(kMembers, bytes, slices_of(bytes)));
  report.add("cepheus", x, ours, "us");
  report.add("cepheus, source told", x, microseconds(cepheus.completed), "us");
  report.add("chain", x, chain_us, "us");
  report.add("over chain", x, chain_us / ours, "times", {.paper = paper.chain});
  if (bytes >= 16 * kMiB) {
    const BestSetting tuned = best_chain(kMembers, bytes, {kMembers, 2048, 4096}, time_of_rival);
    report.add("tuned chain", x, tuned.us, "us", {.note = tuned.setting});
    report.add("over tuned chain", x, tuned.us / ours, "times", {.note = tuned.setting});
  }
  // Beyond this size a tree's time only grows in proportion, and takes minutes to simulate.
  if (bytes > 16 * kMiB) return;
  const double tree_us = time_of_rival(binomial_tree(kMembers, bytes));
  report.add("binomial tree", x, tree_us, "us");
  report.add("over binomial tree", x, tree_us / ours, "times", {.paper = paper.tree});
  const BestSetting graph =
      best_circulant(kMembers, bytes, numbers_of_blocks(bytes), time_of_rival);
  report.add("circulant graph", x, graph.us, "us", {.note = graph.setting});
  report.add("over circulant graph", x, graph.us / ours, "times", {.note = graph.setting});
  if (bytes != kMiB && bytes != 16 * kMiB) return;
  const Schedule near_first = binomial_tree(kMembers, bytes, Tree::kNearFirst);
  report.add("binomial tree, nearest child first", x, time_of_rival(near_first), "us");
  const Schedule blocks = binomial_pipeline(kMembers, bytes, bytes / (256 * kKiB));
  const BestSetting rdmc = best_at_once(blocks, time_of_rival);
  Schedule one_at_once = blocks;
  one_at_once.at_once = 1;
  report.add("RDMC's pipeline, 1 at once", x, time_of_rival(one_at_once), "us",
             {.note = "waits for each acknowledgement"});
  report.add("RDMC's pipeline, 256 KiB blocks", x, rdmc.us, "us", {.note = rdmc.setting});
  const BestSetting long_one = best_at_once(spread_and_roll(kMembers, bytes), time_of_rival);
  report.add("long (spread and roll)", x, long_one.us, "us", {.note = long_one.setting});
}

void run(const ExperimentOptions& options, Report& report) {
  measure(64, {164, 4.5}, report);
  measure(4 * kKiB, {}, report);
  measure(64 * kKiB, {}, report);
  measure(kMiB, {}, report);
  measure(16 * kMiB, {std::nullopt, 8.9}, report);
  if (options.quick) return;
  measure(64 * kMiB, {}, report);
  measure(128 * kMiB, {2.1, std::nullopt}, report);
}

}  // namespace cepheus_fig12

const Experiment kCepheusFig12 = {
    "cepheus-fig12",
    "one broadcast to 511 receivers, by size: Cepheus beside chain and binomial tree",
    "Cepheus fig. 12",
    "40 s quick, 5 min",
    "bytes",
    "over chain",
    "the paper names no sizes: beside our nearest ones",
    cepheus_fig12::run};

}  // namespace cepheus::sim
