// Notes in the figures of the papers' testbed about the sources of their numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {
namespace {

Report run_one(std::string_view name) {
  Report report{std::string(name), [](const std::string&) {}};
  find_experiment(name)->run({.quick = true}, report);
  return report;
}

bool relays(const Point& p) { return p.series.find("relay") != std::string::npos; }

TEST(FourHosts, EveryRowWithACostFittedToFig8IsMarked) {
  for (const std::string_view name : {"cepheus-fig8", "gleam-fig9"}) {
    int fitted = 0;
    const Report report = run_one(name);
    for (const Point& p : report.points()) {
      if (relays(p)) ++fitted;
      EXPECT_EQ(p.beside.note, relays(p) ? "fitted to Cepheus fig. 8" : "") << p.series;
    }
    EXPECT_GT(fitted, 0) << name;
  }
}

TEST(FourHosts, Fig8HasEachRatioWithoutTheFittedCost) {
  std::map<std::string, double> at_64;
  const Report report = run_one("cepheus-fig8");
  for (const Point& p : report.points()) {
    if (p.x == 64) at_64[p.series] = p.value;
  }
  EXPECT_NEAR(at_64["over chain"], 2.66, 0.05);
  EXPECT_NEAR(at_64["over binomial tree"], 1.77, 0.05);
  EXPECT_GT(at_64["over chain, relay 16 us"], 1.5 * at_64["over chain"]);
}

// If a paper names no setting for a rival, the rival gets its best.
TEST(FourHosts, AChainInMoreSlicesIsFasterForLargeMessages) {
  std::map<std::string, Point> largest;
  const Report report = run_one("cepheus-fig9");
  for (const Point& p : report.points()) {
    if (p.x == 128 << 20) largest.insert_or_assign(p.series, p);
  }
  EXPECT_LT(largest.at("over tuned chain").value, 1.1);
  EXPECT_GT(largest.at("over chain").value, 1.4);
  EXPECT_THAT(largest.at("over tuned chain").beside.note, testing::HasSubstr("slices"));
}

}  // namespace
}  // namespace cepheus::sim
