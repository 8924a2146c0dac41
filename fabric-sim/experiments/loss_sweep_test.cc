#include "fabric-sim/experiments/loss_sweep.h"

#include <gtest/gtest.h>

#include <set>

namespace cepheus::sim {
namespace {

// Seeds differ in more than loss: flows' hashes make some of them slow without any loss.
TEST(LossSweep, DividesByTheSameSeedsRunWithoutLoss) {
  LossSweep sweep;
  sweep.fabric = net::Topology::star(2, paper_link());
  sweep.hosts = {0, 1};
  sweep.rates = {1e-3};
  sweep.seeds = 3;
  std::set<std::uint64_t> had_lossless;
  const auto measured = [&](Testbed& testbed) {
    const double lossless_us = 1000.0 * static_cast<double>(testbed.seed());
    return had_lossless.insert(testbed.seed()).second ? lossless_us : 2 * lossless_us;
  };
  Report report("sweep", {});
  sweep_loss(sweep, "a", measured, report);
  int compared = 0;
  for (const Point& p : report.points()) {
    if (p.series == "a, lossless") {
      EXPECT_EQ(p.low, 1);
      EXPECT_EQ(p.high, 3);
    }
    if (p.series != "a, goodput") continue;
    ++compared;
    EXPECT_EQ(p.low, 0.5);
    EXPECT_EQ(p.high, 0.5);
  }
  EXPECT_EQ(compared, 1);
}

}  // namespace
}  // namespace cepheus::sim
