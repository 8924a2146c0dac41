#include "fabric-sim/experiments/reduction_team.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>

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

// Each result is acknowledged: 62 bytes for 4158 on a host's uplink. Closed forms have no
// acknowledgements.
TEST(ReductionTeam, SumsLongVectorsAtTheRateOfTheLinks) {
  constexpr std::uint64_t kBytes = 1 << 20;
  for (const net::Topology& topology :
       {net::Topology::star(2, paper_link()), net::Topology::star(8, paper_link()),
        net::fat_tree(4, paper_link())}) {
    const auto us_of = [&](const wire::MrpReduction& reduction) {
      Testbed testbed(topology,
                      {.memory = kBytes, .has_live_nics = true, .has_lengths_only = true});
      ReductionTeam team(testbed, first_hosts(topology.hosts.size()), reduction);
      team.gather(0);
      return microseconds(team.sum(kBytes));
    };
    const double doubles = us_of(ReductionTeam::kOrdered), integers = us_of(ReductionTeam::kUsual);
    EXPECT_EQ(doubles, integers);
    const double bound = us_of_reduction(kBytes, ReductionTeam::kUsual.unit, Ways(topology));
    EXPECT_NEAR(doubles / bound, 1.01, 0.01) << topology.hosts.size() << " hosts";
  }
}

TEST(ReductionTeam, EndsAsSoonAfterALateMember) {
  constexpr std::uint64_t kBytes = 1 << 16;
  Testbed testbed(net::Topology::star(4, paper_link()),
                  {.memory = kBytes, .has_live_nics = true, .has_lengths_only = true});
  ReductionTeam team(testbed, first_hosts(4));
  team.gather(0);
  const double prompt = microseconds(team.sum(kBytes));
  EXPECT_NEAR(microseconds(team.sum(kBytes, std::chrono::milliseconds(20))) / prompt, 1, 0.02);
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

const Point& point_of(const Report& report, const std::string& series, double x) {
  const auto at = std::ranges::find_if(
      report.points(), [&](const Point& p) { return p.series == series && p.x == x; });
  if (at == report.points().end()) throw std::out_of_range(series);
  return *at;
}

TEST(AllreduceBandwidth, SendsEachVectorOnceAndRabenseifnerTwice) {
  constexpr double kLongest = 4 << 20;
  const Report report = quick_run("allreduce-bandwidth");
  for (const Point& p : report.points()) {
    EXPECT_THAT(p.beside.note, testing::AnyOf(HasSubstr("packets"), HasSubstr("closed form")));
  }
  const auto of = [&](const std::string& series) {
    return point_of(report, "64 hosts, " + series, kLongest);
  };
  EXPECT_THAT(of("cepheus").beside.note, HasSubstr("packets"));
  EXPECT_GT(of("share").value, 0.95);
  EXPECT_GT(of("Rabenseifner over cepheus").value, 1.9);
  EXPECT_GT(of("Rabenseifner alone on its links over cepheus").value, 1.9);
}

// Each loss on a trunk would cost 1 ms, if switches did not ask each other for acknowledgements.
TEST(AllreduceLoss, CostsLessThanRabenseifners) {
  const Report report = quick_run("allreduce-loss");
  EXPECT_GT(point_of(report, "cepheus, goodput", 1e-3).value, 0.6);
  EXPECT_GT(point_of(report, "Rabenseifner over cepheus", 1e-3).value, 2);
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
