// The picture of a fabric, from two snapshots.
#include "switch-emulator/live/status/fabric_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/test_status.h"

namespace cepheus::live {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// Two leaves and a spine with a host at each leaf; h0 sends to h1.
Snapshot leaf_spine() {
  Snapshot snapshot;
  snapshot.status = status_of(net::leaf_spine(2, 1, 1));
  snapshot.status.pid = 7;
  add_tree(
      snapshot.status, kGroup,
      {{"leaf0", {"h0", "spine0"}}, {"spine0", {"leaf0", "leaf1"}}, {"leaf1", {"spine0", "h1"}}},
      "h0");
  return snapshot;
}

json cable(const json& view, const std::string& link) {
  for (const json& each : view.at("cables")) {
    if (each.at("link") == link) return each;
  }
  ADD_FAILURE() << "no cable " << link << " in " << view.at("cables");
  return {};
}

TEST(FabricView, HasSwitchesByFloorAndCablesByTheNameThatCutsThem) {
  Snapshot now = leaf_spine();
  port_to(now.status, "leaf0", "spine0").out_up = false;
  port_to(now.status, "leaf0", "h0").client_pid = 42;
  const json view = fabric_view(now, nullptr);
  ASSERT_EQ(view.at("switches").size(), 3u);
  EXPECT_EQ(cable(view, "leaf0-spine0").at("state"), "cut");
  EXPECT_EQ(cable(view, "leaf1-spine0").at("state"), "up");
  const json host = cable(view, "h0");
  EXPECT_EQ(host.at("to"), -1);
  EXPECT_EQ(host.at("host").at("pid"), 42);
  EXPECT_TRUE(cable(view, "leaf0-spine0").at("host").is_null());
}

TEST(FabricView, ShowsRatesBetweenTwoSnapshots) {
  Snapshot before = leaf_spine(), now = leaf_spine();
  before.seconds = 10;
  now.seconds = 12;
  port_to(before.status, "leaf0", "h0").rx.payload_bytes = 1000;
  port_to(now.status, "leaf0", "h0").rx.payload_bytes = 3000;
  port_to(now.status, "leaf1", "h1").tx.payload_bytes = 4000;
  switch_called(now.status, "leaf0").groups[0].data_bytes = 500;
  const json view = fabric_view(now, &before);
  EXPECT_EQ(cable(view, "h0").at("in_bps"), 8000.0);
  EXPECT_EQ(cable(view, "h0").at("out_bps"), 0.0);
  EXPECT_EQ(cable(view, "h1").at("out_bps"), 16000.0);
  EXPECT_EQ(view.at("sent_bps"), 8000.0);
  EXPECT_EQ(view.at("delivered_bps"), 16000.0);
  EXPECT_EQ(view.at("groups")[0].at("bps"), 2000.0);
}

// A restart, or counters that were reset: no rate is negative or huge.
TEST(FabricView, ShowsNoRateWithoutTraffic) {
  Snapshot before = leaf_spine(), now = leaf_spine();
  now.seconds = 1;
  port_to(before.status, "leaf0", "h0").rx.payload_bytes = 1000;
  EXPECT_EQ(fabric_view(now, &before).at("sent_bps"), 0.0);
  port_to(now.status, "leaf0", "h0").rx.payload_bytes = 5000;
  now.status.pid = 8;
  EXPECT_EQ(fabric_view(now, &before).at("sent_bps"), 0.0) << "another fabric";
  now.status.pid = 7;
  now.status.switches.pop_back();
  EXPECT_EQ(fabric_view(now, &before).at("sent_bps"), 32000.0) << "of the rest";
}

TEST(FabricView, NamesLaggingMembers) {
  Snapshot now = leaf_spine();
  fabric::PathView& late = switch_called(now.status, "leaf1").groups[0].paths[1];
  late.lag = 12;
  late.host = wire::Ipv4(10, 0, 0, 2);
  switch_called(now.status, "leaf0").groups[0].paths[1].lag = 12;
  switch_called(now.status, "spine0").groups[0].paths[1].lag = 12;
  const json group = fabric_view(now, nullptr).at("groups")[0];
  EXPECT_EQ(group.at("source"), "h0");
  EXPECT_EQ(group.at("members"), 2);
  EXPECT_EQ(group.at("behind").at("packets"), 12);
  EXPECT_THAT(group.at("behind").at("names"), ElementsAre("h1"));
}

TEST(FabricView, SumsCountersOverSwitchesAndMarksDrops) {
  Snapshot before = leaf_spine(), now = leaf_spine();
  now.seconds = 2;
  for (SwitchStatus& one : now.status.switches) {
    one.engine[fabric::Counter::kDropTtl] = 4;
    one.engine[fabric::Counter::kDataTaken] = 2;
    one.ports[0].engine[fabric::Counter::kDropTtl] = 4;  // the switch's are its ports' together
  }
  port_to(now.status, "leaf0", "h0").in.dropped_loss = 5;
  port_to(now.status, "leaf0", "spine0").out.dropped_loss = 2;
  port_to(now.status, "spine0", "leaf0").in.dropped_loss = 2;
  const json counters = fabric_view(now, &before).at("counters");
  const auto named = [&](const char* name) {
    for (const json& each : counters) {
      if (each.at("name") == name) return each;
    }
    return json();
  };
  EXPECT_EQ(named("drop_ttl").at("total"), 12);
  EXPECT_EQ(named("drop_ttl").at("per_second"), 6.0);
  EXPECT_TRUE(named("drop_ttl").at("is_drop"));
  EXPECT_THAT(named("drop_ttl").at("help").get<std::string>(), HasSubstr("routing loop"));
  EXPECT_FALSE(named("data_taken").at("is_drop"));
  EXPECT_TRUE(named("link_dropped_loss").at("is_drop"));
  EXPECT_EQ(named("link_dropped_loss").at("total"), 7) << "a trunk's, of both ends, once";
  EXPECT_TRUE(named("link_duplicated").is_null()) << "it is 0";
}

}  // namespace
}  // namespace cepheus::live
