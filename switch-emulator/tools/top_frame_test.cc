// Screens of `cepheusctl top`.
#include "switch-emulator/tools/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/readings.h"

namespace cepheus::tools {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

json cable(const std::string& link, double in, double out, const char* state = "up") {
  return {{"link", link}, {"state", state}, {"loss", 0.0},
          {"in_bps", in}, {"out_bps", out}, {"host", {{"pid", 42}, {"attached", true}}}};
}

json group(const std::string& id, double bps, unsigned behind = 0) {
  json names = json::array();
  if (behind > 0) names.push_back("h3");
  return {{"id", id},          {"source", "h0"},
          {"members", 4},      {"bps", bps},
          {"next_source", ""}, {"behind", {{"names", names}, {"packets", behind}, {"late_ns", 0}}},
          {"failure", ""}};
}

json reading(const std::string& name, const char* help, std::uint64_t total,
             double per_second = 0) {
  return {{"name", name},
          {"help", help},
          {"unit", name.ends_with("bytes") ? "bytes"
                   : name.ends_with("_us") ? "us"
                                           : ""},
          {"total", total},
          {"per_second", per_second},
          {"is_drop", name.starts_with("drop")}};
}

json view_of(std::vector<json> cables, std::vector<json> groups) {
  return {{"uptime_seconds", 3725.4},
          {"sent_bps", 1e9},
          {"delivered_bps", 3e9},
          {"cables", cables},
          {"groups", groups},
          {"counters",
           {reading("pauses_sent", "pauses", 7), reading("queue_high_water_bytes", "queue", 90'000),
            reading("drop_ttl", "time to live used up", 12, 2.5)}}};
}

std::size_t row_with(const std::vector<std::string>& frame, const std::string& text) {
  for (std::size_t i = 0; i < frame.size(); ++i) {
    if (frame[i].find(text) != std::string::npos) return i;
  }
  return frame.size();
}

TEST(Top, ShowsRatesLaggingMembersAndDrops) {
  const auto frame = top_frame(
      view_of({cable("h0", 1e9, 0), cable("h1", 0, 1e9)}, {group("198.18.0.1", 1e9, 3)}), {});
  EXPECT_THAT(frame[0], AllOf(HasSubstr("1:02:05"), HasSubstr("2 of 2 hosts"),
                              HasSubstr("in 1.0 Gb/s, out 3.0 Gb/s, 3.0 copies")));
  EXPECT_THAT(frame[row_with(frame, "198.18.0.1")], HasSubstr("h3 lacks 3"));
  EXPECT_THAT(frame[row_with(frame, "h0  ")], HasSubstr("1.0 Gb/s"));
  EXPECT_THAT(frame[row_with(frame, "drop_ttl")],
              AllOf(HasSubstr("12"), HasSubstr("2 /s"), HasSubstr("time to live used up")));
  EXPECT_LT(row_with(frame, "drop_ttl"), row_with(frame, "pauses_sent")) << "drops come first";
  EXPECT_THAT(frame[row_with(frame, "queue_high_water_bytes")], HasSubstr("90000 B"));
  EXPECT_EQ(frame[1], "") << "data flows: no group is stalled";
}

TEST(Top, FitsTheFirstLineOfALargeFabricInto80Columns) {
  json view = view_of(std::vector<json>(128, cable("h0", 1e8, 0)), {});
  view["uptime_seconds"] = 359'999;
  view["sent_bps"] = 99.9e6;
  view["delivered_bps"] = 127 * 99.9e6;
  EXPECT_THAT(top_frame(view, {})[0], HasSubstr(", 127.0 copies"));
}

TEST(Top, NamesTheLaggingMemberOfAStalledGroup) {
  const auto frame = top_frame(view_of({cable("h0", 0, 0)}, {group("198.18.0.1", 0, 3)}), {});
  EXPECT_THAT(frame[1],
              HasSubstr("group 198.18.0.1 is stalled: all wait for h3, which lacks 3 packets"));
}

TEST(Top, ShowsSinceWhenAReductionWaits) {
  json one = group("198.18.0.1", 0, 1);
  one["behind"]["late_ns"] = 12'300'000'000;
  const auto frame = top_frame(view_of({cable("h0", 0, 0)}, {one}), {});
  EXPECT_THAT(frame[1], HasSubstr("is stalled: all wait for h3, late for 12.3 s"));
  EXPECT_THAT(frame[3], HasSubstr("h3 late for 12.3 s"));
}

TEST(Top, ShowsThatAReductionHasFailed) {
  json one = group("198.18.0.1", 0);
  one["failure"] = "a member was evicted";
  const auto frame = top_frame(view_of({cable("h0", 0, 0)}, {one}), {});
  EXPECT_THAT(frame[1], HasSubstr("group 198.18.0.1 has failed: a member was evicted"));
  EXPECT_THAT(frame[3], HasSubstr(" has failed: a member was evicted"));
}

// For any size and any content it fits, and the keys are at the bottom.
TEST(Top, FitsTheScreen) {
  std::vector<json> cables, groups;
  for (int i = 0; i < 100; ++i) {
    cables.push_back(cable("a-very-long-name-of-a-switch-" + std::to_string(i), i, i));
    groups.push_back(group("198.18.0." + std::to_string(i), i, i));
  }
  const json view = view_of(cables, groups);
  for (const auto& [rows, columns] :
       {std::pair(24, 80), {50, 200}, {6, 40}, {5, 20}, {2, 10}, {1, 1}}) {
    TopScreen screen;
    screen.rows = static_cast<std::size_t>(rows);
    screen.columns = static_cast<std::size_t>(columns);
    const auto frame = top_frame(view, screen);
    EXPECT_EQ(frame.size(), screen.rows);
    for (const std::string& line : frame) EXPECT_LE(line.size(), screen.columns) << line;
    EXPECT_TRUE(rows != 6 || row_with(frame, "LINK") == frame.size()) << "groups take all rows";
    EXPECT_THAT(frame.back(), StartsWith(std::string("q quit").substr(0, screen.columns)));
  }
  const auto frame = top_frame(view, {});
  EXPECT_LT(row_with(frame, "LINK"), 24u);
  EXPECT_LT(row_with(frame, "drop_ttl"), 24u) << "links give way to drops";
  EXPECT_THAT(frame[row_with(frame, "more")], HasSubstr("and "));
}

TEST(Top, ShowsEveryReadingThatFits) {
  json view = view_of({cable("h0", 1e9, 0)}, {});
  json& readings = view.at("counters") = json::array();
  for (const live::ReadingInfo* each : live::all_readings()) {
    readings.push_back(reading(each->full_name, each->help.c_str(), 12'345'678'901));
  }
  const auto frame = top_frame(view, {.rows = 1000, .columns = 200});
  for (const live::ReadingInfo* each : live::all_readings()) {
    EXPECT_THAT(frame, Contains(AllOf(StartsWith(each->full_name + " "), HasSubstr(each->help))));
  }
  EXPECT_THAT(frame[row_with(frame, "paused_us")], HasSubstr("12.3 ks"));
  EXPECT_THAT(frame[row_with(frame, "rx_bytes")], HasSubstr("12.3 GB"));
  EXPECT_THAT(frame[row_with(frame, "doorbells")], HasSubstr("12.3 G"));
}

TEST(Top, SortsLinksByRateOrNameAndScrollsThem) {
  const json view = view_of({cable("c", 1, 0), cable("a", 5, 0), cable("b", 9, 0)}, {});
  const auto first_link = [&](const TopScreen& screen) {
    const auto frame = top_frame(view, screen);
    return frame[row_with(frame, "LINK") + 1].substr(0, 1);
  };
  EXPECT_EQ(first_link({}), "b");
  EXPECT_EQ(first_link({.by_name = true}), "a");
  EXPECT_EQ(first_link({.skip = 9}), "b") << "all are to be seen: nothing to scroll";
  EXPECT_EQ(first_link({.rows = 10, .by_name = true, .skip = 1}), "b");
  EXPECT_THAT(top_frame(view, {.is_paused = true}).back(), HasSubstr("paused"));
}

TEST(Top, ShowsHostileNamesAsText) {
  json view = view_of({cable("\033[2Jh\n", 1, 1, "cut")}, {});
  const auto frame = top_frame(view, {.colour = true});
  const std::string& line = frame[row_with(frame, "x1b[2J")];
  EXPECT_THAT(line, Not(HasSubstr("\033[2J")));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace cepheus::tools
