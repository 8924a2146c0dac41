#include "fabric-sim/experiments/gleam_fig14.h"

#include <gtest/gtest.h>

namespace cepheus::sim {
namespace {

constexpr std::uint64_t kWhole = 1 << 20;

Report measured(std::uint64_t simulated) {
  Report report("grid", {});
  measure_grid(
      {.n = 2, .whole = kWhole, .simulated = simulated, .paper_gleam = 1, .paper_rival = 2},
      Placement::kConsecutive, report);
  return report;
}

TEST(GleamGrid, MarksEachRowAsExtrapolated) {
  const Report report = measured(kWhole / 4);
  ASSERT_FALSE(report.points().empty());
  for (const Point& p : report.points()) {
    EXPECT_EQ(p.beside.note, "extrapolated from 1/4 and 1/8") << p.series;
  }
}

TEST(GleamGrid, AddsNoNoteToRowsThatAreSimulatedWhole) {
  const Report report = measured(kWhole);
  ASSERT_FALSE(report.points().empty());
  for (const Point& p : report.points()) EXPECT_EQ(p.beside.note, "") << p.series;
}

// Flows of four hosts at one switch do not meet by chance, so the line is exact there.
TEST(GleamGrid, ExtrapolatesToTheTimeOfTheWhole) {
  const Report part = measured(kWhole / 4), whole = measured(kWhole);
  for (std::size_t i = 0; i < whole.points().size(); ++i) {
    if (whole.points()[i].unit != "ms") continue;
    EXPECT_NEAR(part.points()[i].value / whole.points()[i].value, 1, 0.03)
        << whole.points()[i].series;
  }
}

}  // namespace
}  // namespace cepheus::sim
