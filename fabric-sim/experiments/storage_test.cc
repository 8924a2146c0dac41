// The storage experiments against the papers' numbers, within the tolerance of their fit.
#include <gtest/gtest.h>

#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {
namespace {

Report quick_run(std::string_view name) {
  Report report{std::string(name), [](const std::string&) {}};
  find_experiment(name)->run({.quick = true}, report);
  return report;
}

// Two constants fitted to two numbers of Cepheus, and to no other paper's.
TEST(Storage, OneRequestSavesAsMuchAsInFig10AndItsRowsAreMarkedAsFitted) {
  std::vector<double> sizes;
  const Report report = quick_run("storage-latency");
  for (const Point& point : report.points()) {
    EXPECT_EQ(point.beside.note, point.beside.paper ? "fitted" : "") << point.series;
    if (!point.beside.paper) continue;
    sizes.push_back(point.x);
    EXPECT_NEAR(point.value, *point.beside.paper, 0.5) << point.x << " bytes";
  }
  EXPECT_EQ(sizes, (std::vector<double>{8 << 10, 512 << 10}));
}

TEST(Storage, AnnouncedWritesSaveAsMuchAsInGleam) {
  int compared = 0;
  double announced = 0, silent = 0;
  const Report report = quick_run("gleam-fig13");
  for (const Point& point : report.points()) {
    if (point.series == "against 3 unicasts" && point.x == 8192) announced = point.value;
    if (point.series == "... nothing announced" && point.x == 8192) silent = point.value;
    if (!point.beside.paper) continue;
    ++compared;
    EXPECT_NEAR(point.value, *point.beside.paper, 5) << point.x << " bytes";
  }
  EXPECT_EQ(compared, 3);
  EXPECT_GT(announced, silent) << "an announcement takes its time on the wire";
}

TEST(Storage, RequestsASecondAreThoseOfOneUnicastAndALittleLessThanThreeTimesThreeUnicasts) {
  double ours = 0, one = 0;
  const Report report = quick_run("storage-iops");
  for (const Point& point : report.points()) {
    if (point.series == "cepheus") ours = point.value;
    if (point.series == "1 unicast") one = point.value;
    if (!point.beside.paper) continue;
    EXPECT_NEAR(point.value / *point.beside.paper, 1, 0.05) << point.series;
    if (point.unit == "times") {
      EXPECT_NEAR(point.value, 2.83, 0.1);
    }
  }
  EXPECT_GE(ours, 0.97 * one);
}

}  // namespace
}  // namespace cepheus::sim
