// One Allreduce by the switches, of which one member comes late: the time from then on.
#include <string>
#include <vector>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/closed_forms.h"
#include "fabric-sim/experiments/reduction_team.h"

namespace cepheus::sim {
namespace allreduce_late {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 1 << 20;

void run(const ExperimentOptions& options, Report& report) {
  const std::size_t hosts = options.quick ? 8 : 64;
  std::vector<wire::Duration> lates = {0ms, 1ms, 100ms};
  if (!options.quick) lates = {0ms, 1ms, 10ms, 100ms, 1s, 10s};
  const net::Topology topology = part_of_fat_tree(hosts, paper_link());
  const double bound = us_of_reduction(kBytes, ReductionTeam::kUsual.unit, Ways(topology));
  Testbed testbed(topology, {.memory = kBytes, .has_live_nics = true, .has_lengths_only = true});
  ReductionTeam team(testbed, first_hosts(hosts), ReductionTeam::kOrdered);
  team.gather(0);
  for (const wire::Duration late : lates) {
    const double x = microseconds(late) / 1000;
    report.progress(std::to_string(x) + " ms");
    const wire::Duration time = team.sum(kBytes, late);
    report.add("after the last member", x, microseconds(time), "us", {.expected = bound});
  }
}

}  // namespace allreduce_late

const Experiment kAllreduceLate = {
    "allreduce-late",
    "one Allreduce of 1 MiB among 64 hosts, of which one comes 1 ms to 10 s late",
    "our own",
    "1 s quick, 10 s",
    "ms late",
    "after the last member",
    "the wait costs nothing afterwards",
    allreduce_late::run,
};

}  // namespace cepheus::sim
