#include "fabric-sim/experiments/reduction_team.h"

#include <gmock/gmock.h>

#include "fabric-sim/experiments/closed_forms.h"
#include "fabric-sim/experiments/experiment.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace {

using testing::HasSubstr;

double over_bound(const net::Topology& topology, std::size_t block) {
  const std::size_t n = topology.hosts.size();
  const Ways ways(topology);
  const double bound = us_of_reduction(n * block, ReductionTeam::kUsual.unit, ways);
  Testbed testbed(topology, {.has_live_nics = true});
  return microseconds(time_of_gather(testbed, first_hosts(n), block)) / bound;
}

TEST(ReductionTeam, TakesTheLinksToTheRootAndBack) {
  for (const std::size_t n : {2, 4, 8}) {
    for (const std::size_t block : {0, 8, 100, 4096}) {
      EXPECT_NEAR(over_bound(net::Topology::star(n, paper_link()), block), 1, 0.02)
          << n << " hosts, " << block;
    }
  }
}

TEST(ReductionTeam, HasItsRootInTheMiddle) {
  const net::Topology fabric = net::fat_tree(4, paper_link());
  for (const std::size_t block : {0, 8, 256, 2048}) {
    EXPECT_NEAR(over_bound(fabric, block), 1, 0.02) << block;
  }
}

Report quick_run(const char* name) {
  Report report(name, {});
  find_experiment(name)->run({.quick = true}, report);
  return report;
}

TEST(AllreduceLatency, NamesRowsWithATooLongGather) {
  const Report report = quick_run("allreduce-latency");
  int served = 0, left = 0;
  for (const Point& p : report.points()) {
    if (!p.series.ends_with("hosts, cepheus")) continue;
    const bool is_beyond = p.beside.note.find("beyond 8") != std::string::npos;
    EXPECT_EQ(is_beyond, p.series.starts_with("128 ") && p.x > 256) << p.series << p.x;
    ++(is_beyond ? left : served);
    if (is_beyond) continue;
    EXPECT_NEAR(p.value / p.beside.expected.value(), 1, 0.02) << p.series << p.x;
  }
  EXPECT_EQ(served, 8);
  EXPECT_EQ(left, 1);
}

TEST(Barrier, TakesAThirdOfItsBestRivalInRoundsWithEightHosts) {
  const Report report = quick_run("barrier");
  int rows = 0;
  for (const Point& p : report.points()) {
    if (p.series != "rounds over cepheus" || p.x != 8) continue;
    ++rows;
    EXPECT_NEAR(p.value, 3, 0.05) << p.beside.note;
  }
  EXPECT_EQ(rows, 1);
}

}  // namespace
}  // namespace cepheus::sim
