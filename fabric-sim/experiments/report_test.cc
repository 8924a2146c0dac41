#include "fabric-sim/experiments/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "fabric-sim/experiments/command.h"

namespace cepheus::sim {
namespace {

using testing::HasSubstr;

TEST(Report, GivesTheMedianAndTheRangeOfTheSeeds) {
  Report report("fig", {});
  report.add("a", 8, std::vector<double>{5, 1, 3}, "ms");
  report.add("b", 8, std::vector<double>{4, 1, 2, 3}, "ms");
  EXPECT_EQ(report.points()[0].value, 3);
  EXPECT_EQ(report.points()[0].low, 1);
  EXPECT_EQ(report.points()[0].high, 5);
  EXPECT_EQ(report.points()[1].value, 2.5);
}

TEST(Report, WritesJsonWithThePapersNumberOrNullApartFromTheory) {
  Report report("fig", {});
  report.add("a", 64, 1.5, "us", {.paper = 2.25});
  report.add("a", 128, 3, "us", {.expected = 4, .note = "2 at once"});
  std::ostringstream out;
  report.write_json(out);
  const auto json = nlohmann::json::parse(out.str());
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0], nlohmann::json::parse(R"({"experiment": "fig", "series": "a", "x": 64,
      "value": 1.5, "unit": "us", "low": 1.5, "high": 1.5, "paper": 2.25, "expected": null, "note": ""})"));
  EXPECT_TRUE(json[1]["paper"].is_null());
  EXPECT_EQ(json[1]["expected"], 4);
  EXPECT_EQ(json[1]["note"], "2 at once");
}

TEST(Report, CurvesAreInJsonButNotInTheTable) {
  Report report("fig", {});
  report.add("settled", 2, 9, "Gb/s");
  report.draw("course", 1, 5, "Gb/s");
  report.draw("course", 2, 7, "Gb/s");
  std::ostringstream table, json;
  report.write_table(table, "ms");
  EXPECT_THAT(table.str(), testing::Not(HasSubstr("course")));
  report.write_json(json);
  EXPECT_EQ(nlohmann::json::parse(json.str()).size(), 3u);
}

TEST(Report, WritesSeriesAfterSeriesWithThePaperBeside) {
  Report report("fig", {});
  report.add("a", 64, 1.5, "us", {.paper = 2.25});
  report.add("b", 64, 7, "us");
  report.add("a", 128, 2, "us");
  std::ostringstream out;
  report.write_table(out, "bytes");
  EXPECT_EQ(out.str(),
            "series  bytes   value  low..high  paper\n"
            "a          64  1.5 us              2.25\n"
            "a         128    2 us                 -\n"
            "b          64    7 us                 -\n");
}

TEST(Report, KeepsTheoryApartFromThePaperAndNotesSpecialRows) {
  Report report("fig", {});
  report.add("a", 64, 1.5, "us", {.paper = 2.25});
  report.add("b", 64, 7, "us", {.expected = 8, .note = "extrapolated"});
  std::ostringstream out;
  report.write_table(out, "bytes");
  EXPECT_EQ(out.str(),
            "series  bytes   value  low..high  paper  expected  note\n"
            "a          64  1.5 us              2.25         -\n"
            "b          64    7 us                 -         8  extrapolated\n");
}

TEST(Report, OmitsEmptyColumns) {
  Report report("fig", {});
  report.add("a", 64, 1.5, "us");
  std::ostringstream out;
  report.write_table(out, "bytes");
  EXPECT_EQ(out.str(),
            "series  bytes   value  low..high\n"
            "a          64  1.5 us           \n");
}

std::string headline(const Report& report) {
  std::ostringstream out;
  report.write_headline(out, "a", "equal");
  const std::string text = out.str();
  EXPECT_THAT(text, testing::StartsWith("| what | paper | ours | verdict |\n|---|---|---|---|\n"));
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

TEST(Report, ItsHeadlineHasTheFirstAndTheLastPointWithAPapersNumber) {
  Report report("fig", {});
  report.add("a", 1, 1, "us", {.expected = 9});
  report.add("a", 2, 2, "us", {.paper = 2.5, .expected = 9});
  report.add("b", 2, 7, "us", {.paper = 7.5});
  report.add("a", 3, 3, "us", {.note = "paper: 3..4"});
  report.add("a", 4, 4, "us", {.paper = 4.5});
  report.add("a", 5, 5, "us");
  EXPECT_EQ(headline(report), "| a | 2.5, 4.5 | 2, 4 us | equal |\n");
}

TEST(Report, ItsHeadlineHasExpectedValuesWithoutAPapersNumber) {
  Report report("fig", {});
  report.add("a", 1, 1, "us");
  report.add("a", 2, 2, "us", {.expected = 9});
  report.add("a", 3, 3, "us", {.expected = 8});
  EXPECT_EQ(headline(report), "| a | 9, 8 expected | 2, 3 us | equal |\n");
}

TEST(Report, ItsHeadlineHasTheEndsOfASeriesWithoutEither) {
  Report report("fig", {});
  EXPECT_EQ(headline(report), "| a | - | - | equal |\n");
  report.add("a", 1, 1, "us");
  report.add("a", 2, 7, "us");
  report.draw("a", 3, 5, "us");
  report.add("a", 3, 2, "us");
  EXPECT_EQ(headline(report), "| a | - | 1, 2 us | equal |\n");
}

TEST(Experiments, HaveUniqueNamesAndDescriptions) {
  std::set<std::string_view> names;
  for (const Experiment& e : experiments()) {
    EXPECT_TRUE(names.insert(e.name).second) << e.name;
    EXPECT_EQ(find_experiment(e.name), &e);
    for (const std::string_view text : {e.shows, e.figure, e.cost, e.x, e.headline, e.verdict}) {
      EXPECT_FALSE(text.empty()) << e.name;
    }
  }
}

TEST(Experiments, HavePagesThatDescribeTheSimulation) {
  const std::filesystem::path pages = CEPHEUS_SOURCE_DIR "/docs/experiments";
  for (const Experiment& e : experiments()) {
    EXPECT_TRUE(exists(pages / (std::string(e.name) + ".md"))) << e.name;
  }
}

TEST(Experiments, AnUnknownNameIsBadUsageAndTheKnownAreListed) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_experiment({false, "cepheus-fig99", {}, ""}), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cepheus-memory"));
}

TEST(Experiments, AFileThatCannotBeWrittenIsAFailure) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_experiment({false, "cepheus-memory", {}, "/proc/nowhere/points"}), 1);
  testing::internal::GetCapturedStdout();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("can't be written"));
}

}  // namespace
}  // namespace cepheus::sim
