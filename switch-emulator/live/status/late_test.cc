#include "switch-emulator/live/status/late.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/fabric_view.h"
#include "switch-emulator/live/status/test_status.h"

namespace cepheus::live {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr wire::Instant kNow{100s};

// Two leaves and a spine, two hosts at each leaf; leaf0 is the root. All have the results of 7 units.
class LateMembers : public testing::Test {
 protected:
  LateMembers() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    status_.now = kNow;
    status_.utc = 1'800'000'000s;
    add(kGroup);
  }
  void add(wire::McstId id) {
    add_tree(status_, id,
             {{"leaf0", {"h0", "h1", "spine0"}},
              {"spine0", {"leaf0", "leaf1"}},
              {"leaf1", {"spine0", "h2", "h3"}}},
             "");
    for (SwitchStatus& one : status_.switches) {
      fabric::GroupView& group = one.groups.back();
      group.reduction = {4096, 64, one.name == "leaf0", 7, 7, 7, {}};
      for (fabric::PathView& path : group.paths) {
        if (path.is_host) path.host = port_to(status_, one.name, path.name).address;
      }
    }
  }
  fabric::GroupView& at(const std::string& name) {
    return switch_called(status_, name).groups.back();
  }
  // Units 7 to `newest` - 1 are open there since `since`.
  void open(const std::string& name, std::uint64_t newest, wire::Instant since) {
    at(name).reduction->newest = newest;
    at(name).reduction->waits_since = since;
  }
  void late(const std::string& name, const std::string& to, std::uint64_t unit, wire::Instant since,
            std::uint16_t bytes = 8) {
    for (fabric::PathView& path : at(name).paths) {
      if (path.name != to) continue;
      path.lag = static_cast<std::uint32_t>(at(name).reduction->newest - unit);
      path.late = {unit, since, 9, 7, bytes};  // a sum of int64
    }
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const LateMember& each : late_members(status_)) names.push_back(each.name);
    return names;
  }

  FabricStatus status_ = status_of(net::leaf_spine(2, 1, 2));
};

TEST_F(LateMembers, AreNoneWhileNothingIsUnderWay) {
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(late_text(status_, false), "nobody is late\n");
  EXPECT_EQ(late_json(status_).dump(), R"({"failed":[],"late":[]})");
  EXPECT_EQ(late_text(FabricStatus(), false), "nobody is late\n");
}

TEST_F(LateMembers, AreNamedWithUnitSwitchAndTime) {
  open("leaf0", 8, kNow - 50ms);
  late("leaf0", "h1", 7, kNow - 50ms);
  late("leaf0", "spine0", 7, kNow - 50ms);
  open("spine0", 8, kNow - 40ms);
  open("leaf1", 8, kNow - 60ms);
  const std::string since =
      "since 2027-01-15 07:59:59.940; others have contributed 8 bytes to a sum of int64\n";
  EXPECT_EQ(late_text(status_, false),
            "198.18.0.1  unit 7: h1 (10.0.0.2) at leaf0, late for 60.0 ms, " + since)
      << "a member at leaf1 was the first";
  EXPECT_THAT(late_text(status_, true), HasSubstr("\033[31mh1\033[0m (10.0.0.2) at leaf0"));
  const nlohmann::json one = late_json(status_).at("late").at(0);
  EXPECT_EQ(one, (nlohmann::json{{"group", "198.18.0.1"},
                                 {"epoch", 0},
                                 {"unit", 7},
                                 {"units", 1},
                                 {"name", "h1"},
                                 {"host", "10.0.0.2"},
                                 {"switch", "leaf0"},
                                 {"late_ns", 60'000'000},
                                 {"since_utc_ns", 1'799'999'999'940'000'000},
                                 {"others", "8 bytes to a sum of int64"}}));
}

// The members would only learn it once the late one has contributed.
TEST_F(LateMembers, AreShownWithContributionsThatDiffer) {
  open("leaf0", 8, kNow - 50ms);
  late("leaf0", "h1", 7, kNow - 50ms, 16);
  open("leaf1", 8, kNow - 60ms);
  late("leaf1", "h3", 7, kNow - 60ms);
  const std::string differ = "8 bytes to a sum of int64, and 16 bytes to a sum of int64";
  const auto others = [&] { return late_json(status_).at("late").at(0).at("others"); };
  EXPECT_EQ(others(), differ);
  std::ranges::reverse(status_.switches);
  EXPECT_EQ(others(), differ) << "in any order of switches";
  late("leaf0", "h1", 7, kNow - 50ms);
  EXPECT_EQ(others(), "8 bytes to a sum of int64");
}

// Their switch knows of no unit yet.
TEST_F(LateMembers, MayBeAllOfASwitch) {
  open("leaf0", 8, kNow - 3s);
  late("leaf0", "spine0", 7, kNow - 2s);
  EXPECT_THAT(names(), ElementsAre("h2", "h3"));
  EXPECT_THAT(late_text(status_, false), HasSubstr("h3 (10.0.0.4) at leaf1, late for 3.0 s"));
  const WaitedFor waited = waited_for(status_, kGroup);
  EXPECT_THAT(waited.names, ElementsAre("h2", "h3"));
  EXPECT_EQ(waited.packets, 1u);
}

TEST_F(LateMembers, AreInThePictureOfTheFabric) {
  open("leaf0", 8, kNow - 3s);
  late("leaf0", "h1", 7, kNow - 3s);
  open("leaf1", 8, kNow - 3s);
  const auto behind = [&] {
    return fabric_view({status_, 0}, nullptr).at("groups")[0].at("behind");
  };
  EXPECT_EQ(behind(),
            (nlohmann::json{{"names", {"h1"}}, {"packets", 1}, {"late_ns", 3'000'000'000}}));
  status_.now = kNow - 3s + 999us;
  EXPECT_EQ(behind().at("packets"), 0) << "contributions are under way";
}

TEST_F(LateMembers, AreTheOnlyOnesThatAGroupWaitsFor) {
  open("leaf0", 10, kNow - 3s);
  late("leaf0", "h0", 9, kNow - 10us);
  late("leaf0", "h1", 8, kNow - 3s);
  open("leaf1", 10, kNow - 3s);
  const WaitedFor waited = waited_for(status_, kGroup);
  EXPECT_THAT(waited.names, ElementsAre("h1")) << "h0's contribution is under way";
  EXPECT_EQ(waited.packets, 2u);
  EXPECT_EQ(waited.late, 3s);
  status_.now = kNow - 3s + 999us;
  EXPECT_THAT(waited_for(status_, kGroup).names, IsEmpty());
}

TEST_F(LateMembers, BeginWithTheLatestOfAllGroups) {
  open("leaf0", 9, kNow - 20ms);
  late("leaf0", "h0", 8, kNow - 10ms);
  late("leaf0", "h1", 7, kNow - 20ms);
  open("leaf1", 9, kNow - 20ms);
  add(wire::McstId(198, 18, 0, 2));
  open("leaf0", 8, kNow - 15ms);
  open("leaf1", 8, kNow - 15ms);
  late("leaf1", "h3", 7, kNow - 15ms);
  EXPECT_THAT(names(), ElementsAre("h1", "h3", "h0"));
}

TEST_F(LateMembers, AreNotThoseWhosePacketsAreUnderWay) {
  open("leaf0", 8, kNow - 999us);
  late("leaf0", "h1", 7, kNow - 999us);
  open("leaf1", 8, kNow + 10us);  // it was looked at later
  EXPECT_THAT(names(), IsEmpty());
  status_.now += 1us;
  EXPECT_THAT(names(), ElementsAre("h1"));
}

TEST_F(LateMembers, AreBehindATrunkIfTheirSwitchIsNotShown) {
  open("leaf0", 8, kNow - 50ms);
  late("leaf0", "spine0", 7, kNow - 50ms);
  std::erase_if(status_.switches, [](const SwitchStatus& one) { return one.name != "leaf0"; });
  EXPECT_THAT(late_text(status_, false),
              HasSubstr("unit 7: members behind spine0 at leaf0, late for 50.0 ms"));
  EXPECT_EQ(late_json(status_).at("late").at(0).at("host"), "");
}

TEST_F(LateMembers, AreOfOneEpochOfAGroup) {
  open("leaf0", 8, kNow - 50ms);
  at("leaf0").epoch = 2;
  EXPECT_THAT(names(), IsEmpty());
}

// It ends, so nobody waits any more. Switches that have not failed still wait.
TEST_F(LateMembers, AreNoneOfAGroupThatHasFailedAtASwitch) {
  open("leaf0", 8, kNow - 50ms);
  late("leaf0", "h1", 7, kNow - 50ms);
  const std::string why = "members that reduce different things";
  at("leaf1").reduction->failure = why;
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(waited_for(status_, kGroup).names, IsEmpty());
  EXPECT_EQ(late_text(status_, false), "198.18.0.1  has failed at leaf1: " + why + "\n");
  const nlohmann::json one = late_json(status_).at("failed").at(0);
  EXPECT_EQ(one, (nlohmann::json{
                     {"group", "198.18.0.1"}, {"epoch", 0}, {"switch", "leaf1"}, {"reason", why}}));
  EXPECT_EQ(waiting_lines(status_), "198.18.0.1  has failed: " + why + "\n");
  EXPECT_THAT(to_text(status_, View::kGroups, false), HasSubstr(", has failed: " + why + "\n"));
  EXPECT_EQ(fabric_view({status_, 0}, nullptr).at("groups")[0].at("failure"), why);
  EXPECT_EQ(late_json(*status_from_json(to_json(status_))), late_json(status_));
}

TEST_F(LateMembers, ComeBackFromJson) {
  open("leaf0", 8, kNow - 50ms);
  late("leaf0", "h1", 7, kNow - 50ms);
  const auto back = status_from_json(nlohmann::json::parse(to_json(status_).dump()));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(late_json(*back), late_json(status_));
  EXPECT_EQ(to_json(*back), to_json(status_));
}

}  // namespace
}  // namespace cepheus::live
