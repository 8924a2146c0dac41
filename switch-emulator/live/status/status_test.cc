#include "switch-emulator/live/status/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/test_status.h"

namespace cepheus::live {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

fabric::PathView host_path(std::uint16_t port, const std::string& name, std::uint32_t lag) {
  fabric::PathView path;
  path.port = wire::PortId(port);
  path.name = name;
  path.is_host = true;
  path.host = wire::Ipv4(10, 0, 0, static_cast<std::uint8_t>(port + 1));
  path.qpn = wire::Qpn(0x11u + port);
  path.acked = wire::Psn(100 - lag);
  path.lag = lag;
  return path;
}

fabric::PathView trunk_path(std::uint16_t port, const std::string& name, std::uint32_t lag) {
  fabric::PathView path = host_path(port, name, lag);
  path.is_host = false;
  path.host = wire::Ipv4();
  path.qpn = wire::Qpn();
  return path;
}

fabric::GroupView group(std::vector<fabric::PathView> paths) {
  fabric::GroupView view;
  view.id = kGroup;
  view.epoch = 3;
  view.leader = wire::Ipv4(10, 0, 0, 1);
  view.source = wire::Ipv4(10, 0, 0, 1);
  view.active = true;
  view.start = wire::Psn(10);
  view.base = wire::Psn(20);
  view.sent = wire::Psn(100);
  view.acknowledged = wire::Psn(88);
  view.data_packets = 90;
  view.data_bytes = 368640;
  view.copies = 180;
  view.table_bytes = 321;
  view.beside_bytes = 99;
  view.paths = std::move(paths);
  view.paths[0].is_source = true;
  return view;
}

PortStatus port(std::uint16_t id, const std::string& name) {
  PortStatus p;
  p.id = wire::PortId(id);
  p.name = name;
  p.address = wire::Ipv4(10, 0, 0, static_cast<std::uint8_t>(id + 1));
  return p;
}

// h0 sends; h1 is up to date; h2 lacks 12 packets.
FabricStatus one_switch() {
  FabricStatus status;
  status.pid = 4242;
  status.uptime_seconds = 1.5;
  status.mtu = 4096;
  SwitchStatus s0;
  s0.name = "s0";
  s0.ports = {port(0, "h0"), port(1, "h1"), port(2, "h2")};
  s0.ports[0].attached = true;
  s0.ports[0].client_pid = 77;
  s0.ports[0].link.rate.bits_per_second = 1'000'000'000;
  s0.ports[0].link.delay = std::chrono::microseconds(100);
  s0.ports[0].link.loss = s0.ports[0].in_loss = 0.01;
  s0.ports[0].rx.payload_bytes = 368640;
  s0.ports[0].in.dropped_loss = 3;
  s0.ports[0].in.frames = 90;
  s0.ports[0].out.corrupted = 2;
  s0.ports[2].access[fabric::PortCounter::kDropEgressFull] = 4;
  s0.ports[2].engine[fabric::Counter::kDropNotMember] = 5;
  s0.groups = {group({host_path(0, "h0", 0), host_path(1, "h1", 0), host_path(2, "h2", 12)})};
  s0.tombstones = 1;
  s0.engine[fabric::Counter::kDropNotMember] = 5;
  s0.engine[fabric::Counter::kRxPackets] = 93;
  status.switches = {s0};
  return status;
}

// h0 on s0 sends; h1 and h2 are behind s1, the other end of s0's trunk.
FabricStatus two_switches(std::uint32_t trunk_lag, std::uint32_t h2_lag) {
  FabricStatus status;
  SwitchStatus s0, s1;
  s0.name = "s0";
  s0.ports = {port(0, "h0")};
  s0.groups = {group({host_path(0, "h0", 0), trunk_path(1, "s1#2", trunk_lag)})};
  s1.name = "s1";
  s1.ports = {port(1, "h1"), port(2, "h2")};
  s1.groups = {group({trunk_path(0, "s0", 0), host_path(1, "h1", 0), host_path(2, "h2", h2_lag)})};
  status.switches = {s1, s0};  // the source's switch need not come first
  return status;
}

TEST(WaitedFor, IsTheHostFurthestBehind) {
  const WaitedFor late = waited_for(one_switch(), kGroup);
  EXPECT_THAT(late.names, ElementsAre("h2"));
  EXPECT_EQ(late.packets, 12u);
}

TEST(WaitedFor, IsNoHostOnceAllHaveAcknowledged) {
  FabricStatus status = one_switch();
  status.switches[0].groups[0].paths[2].lag = 0;
  EXPECT_THAT(waited_for(status, kGroup).names, IsEmpty());
  EXPECT_THAT(waited_for(status, wire::McstId(198, 18, 0, 2)).names, IsEmpty());
}

TEST(WaitedFor, IsNeverTheSource) {
  FabricStatus status = one_switch();
  status.switches[0].groups[0].paths[0].lag = 50;
  EXPECT_THAT(waited_for(status, kGroup).names, ElementsAre("h2"));
}

TEST(WaitedFor, FollowsATrunkToTheHostBehindIt) {
  const WaitedFor late = waited_for(two_switches(20, 12), kGroup);
  EXPECT_THAT(late.names, ElementsAre("h2"));
  EXPECT_EQ(late.packets, 20u);
}

TEST(WaitedFor, IsTheTrunkIfNoHostBehindItIsLate) {
  EXPECT_THAT(waited_for(two_switches(20, 0), kGroup).names, ElementsAre("s1#2"));
}

TEST(StatusText, ShowsRegionsAndTheLastRefusedWrite) {
  FabricStatus status = one_switch();
  fabric::GroupView& view = status.switches[0].groups[0];
  view.paths[1].regions = {{7, 0x7f0000001000, 4096}, {9, 0x1000, 1}};
  view.refused = {wire::Ipv4(10, 0, 0, 2), 7, 4090, 64, false, 3};
  const auto back = status_from_json(nlohmann::json::parse(to_json(status).dump()));
  ASSERT_TRUE(back);
  const std::string text = to_text(*back, View::kGroups, false);
  EXPECT_THAT(text, HasSubstr("receiver, region 7 (4096 bytes), region 9 (1 byte)\n"));
  EXPECT_THAT(text, HasSubstr("  WRITEs refused: 3, the last one of 64 bytes at offset 4090 of "
                              "region 7 of h1\n"));
  view.refused->by_nic = true;
  EXPECT_THAT(to_text(status, View::kGroups, false), HasSubstr("the last one by the NIC of h1\n"));
}

TEST(StatusText, ShowsAnotherWriteModeThanTheUsualOne) {
  FabricStatus status = one_switch();
  fabric::GroupView& view = status.switches[0].groups[0];
  EXPECT_THAT(to_text(status, View::kGroups, false), Not(HasSubstr("WRITEs:")));
  view.write_mode = "per-request";
  view.refused = {wire::Ipv4(10, 0, 0, 2), 0, 0, 64, false, 1};
  const std::string text = to_text(status, View::kGroups, false);
  EXPECT_THAT(text, HasSubstr(". WRITEs: per-request\n"));
  EXPECT_THAT(text, HasSubstr("of 64 bytes, more than was announced for h1\n"));
}

TEST(StatusText, ShowsTheUnitsOfAReductionAndItsLateMembers) {
  FabricStatus status = one_switch();
  fabric::GroupView& view = status.switches[0].groups[0];
  view.paths[0].is_source = false;
  view.reduction = {1024, 64, true, 9, 7, 7, {}, {}, true};
  view.paths[2].lag = 2;
  status.now = wire::Instant(std::chrono::seconds(10));
  view.paths[2].late = {7, status.now - std::chrono::milliseconds(5), 8, 9, 24};
  const auto back = status_from_json(nlohmann::json::parse(to_json(status).dump()));
  ASSERT_TRUE(back);
  const fabric::LateView& late = back->switches[0].groups[0].paths[2].late.value();
  EXPECT_EQ(late.operation, 8);
  EXPECT_EQ(late.type, 9);
  EXPECT_EQ(late.bytes, 24);
  const std::string text = to_text(*back, View::kGroups, false);
  EXPECT_THAT(text, HasSubstr("; leader h0, waiting for h2 (2 packets)\n"));
  EXPECT_THAT(text, HasSubstr("  Reduction: 7 units with results, 2 under way of 64 at most. Units "
                              "of up to 1024 bytes. Flat\n"));
  EXPECT_THAT(text, HasSubstr("2  member\n"));
  EXPECT_THAT(text, Not(HasSubstr("CNPs:"))) << "reductions have no policy";
}

TEST(StatusText, ShowsTheFeedbackThatReachesTheSource) {
  FabricStatus status = one_switch();
  fabric::GroupView& view = status.switches[0].groups[0];
  view.cnp_policy = "tmcf, slots of 20ms";
  view.path_mtu = 1024;
  view.mtu_limit = "port h1";
  view.paths[2].is_worst = true;
  view.held_nak = wire::Psn(95);
  const auto back = status_from_json(nlohmann::json::parse(to_json(status).dump()));
  ASSERT_TRUE(back);
  const std::string text = to_text(*back, View::kGroups, false);
  EXPECT_THAT(text, HasSubstr("a NAK for 0x00005f waits"));
  EXPECT_THAT(text, HasSubstr(". CNPs: tmcf, slots of 20ms\n"));
  EXPECT_THAT(text, HasSubstr(". Packets of 1024 bytes, by port h1 at s0\n"));
  EXPECT_THAT(text, HasSubstr("12  receiver, worst path\n"));
}

TEST(StatusText, ShowsTheTreeOfAGroupAndLaggingMembers) {
  EXPECT_EQ(
      to_text(one_switch(), View::kGroups, false),
      "198.18.0.1  epoch 3, active; leader h0, source h0; waiting for h2 (12 packets)\n"
      "  PSN: start 0x00000a, turn 0x000014, sent 0x000064, acknowledged 0x000058. "
      "Data: 90 packets, 368640 bytes, 180 copies. Table: 321 bytes in s0, and 99 bytes beside it. "
      "CNPs: worst-path\n"
      "  Window: no limit is known\n"
      "  TREE        QPN     ACKED  LAG  ROLE\n"
      "  s0\n"
      "  ├─ h0  0x000011         -    0  source\n"
      "  ├─ h1  0x000012  0x000064    0  receiver\n"
      "  └─ h2  0x000013  0x000058   12  receiver\n");
}

TEST(StatusText, ShowsTheWindowOfAGroupAndWhatLimitsIt) {
  FabricStatus status = two_switches(20, 12);
  status.switches[1].groups[0].window = 20;  // the source's switch has the least of all
  status.switches[0].groups[0].window = 32;
  status.switches[0].groups[0].paths[1].window = 64;
  status.switches[0].groups[0].paths[2].window = 20;
  const auto back = status_from_json(nlohmann::json::parse(to_json(status).dump()));
  ASSERT_TRUE(back);
  EXPECT_THAT(to_text(*back, View::kGroups, false),
              HasSubstr("\n  Window: 20 packets, by the queue of s1 before h2\n"));
  status.switches[1].groups[0].window = 16;
  EXPECT_THAT(to_text(status, View::kGroups, false),
              HasSubstr("\n  Window: 16 packets, while packets are lost\n"));
}

TEST(StatusText, ShowsSourceLaggingMembersAndNextSourceInALine) {
  FabricStatus status = two_switches(20, 12);
  const std::string line = "198.18.0.1  source h0; waiting for h2 (20 packets)";
  EXPECT_EQ(waiting_lines(status), line + "\n");
  status.switches[0].groups[0].next_source = wire::Ipv4(10, 0, 0, 2);
  EXPECT_EQ(waiting_lines(status), line + "; h1 waits for its turn\n");
  EXPECT_THAT(to_text(status, View::kGroups, false), HasSubstr("; h1 waits for its turn\n"));
  EXPECT_EQ(waiting_lines(FabricStatus()), "no groups\n");
}

TEST(StatusText, NestsTheSwitchesOfATreeUnderTheSource) {
  const std::string text = to_text(two_switches(20, 12), View::kGroups, false);
  EXPECT_THAT(text, HasSubstr("  s0\n"
                              "  ├─ h0     0x000011         -    0  source\n"
                              "  └─ s1#2          -  0x000050   20  switch\n"
                              "     ├─ h1  0x000012  0x000064    0  receiver\n"
                              "     └─ h2  0x000013  0x000058   12  receiver\n"));
}

TEST(StatusText, ReportsThatThereAreNoGroups) {
  FabricStatus status = one_switch();
  status.switches[0].groups.clear();
  EXPECT_EQ(to_text(status, View::kGroups, false), "no groups\n");
}

TEST(StatusText, ShowsPorts) {
  EXPECT_EQ(to_text(one_switch(), View::kPorts, false),
            "fabric of pid 4242, up 1.5 s, path MTU 4096, ICRC deferred\n"
            "s0: 3 ports, 1 group, 1 tombstone\n"
            "  PORT  NAME  ADDRESS   STATE        RATE  DELAY  LOSS  RX FRAMES  RX PAYLOAD  "
            "TX FRAMES  TX PAYLOAD  LOST\n"
            "     0  h0    10.0.0.1  pid 77      1Gbps  100us  0.01          0      368640  "
            "        0           0     3\n"
            "     1  h1    10.0.0.2  free    unlimited    0ns   0.0          0           0  "
            "        0           0     0\n"
            "     2  h2    10.0.0.3  free    unlimited    0ns   0.0          0           0  "
            "        0           0     4\n");
}

TEST(StatusText, ShowsTheHolderOfAReservation) {
  FabricStatus status = one_switch();
  std::vector<PortStatus>& ports = status.switches[0].ports;
  for (PortStatus& each : ports) each.reserved = true;
  ports[0].reserved_by = ports[1].reserved_by = 4711;
  const auto sent = status_from_json(to_json(status));
  ASSERT_TRUE(sent);
  const std::string text = to_text(*sent, View::kPorts, false);
  EXPECT_THAT(text, HasSubstr("10.0.0.1  pid 77  "));
  EXPECT_THAT(text, HasSubstr("10.0.0.2  for pid 4711  "));
  EXPECT_THAT(text, HasSubstr("10.0.0.3  reserved  "));
}

TEST(StatusText, ShowsCutLinksAndLossInOneDirection) {
  FabricStatus status = one_switch();
  std::vector<PortStatus>& ports = status.switches[0].ports;
  ports[0].in_loss = 0.5;
  ports[0].out_up = false;
  ports[1].in_up = false;
  ports[2].in_up = ports[2].out_up = false;
  const std::string text = to_text(status, View::kPorts, false);
  EXPECT_THAT(text, HasSubstr("rx 0.5, tx 0.01"));
  EXPECT_THAT(text, HasSubstr("10.0.0.1  cut (tx)"));
  EXPECT_THAT(text, HasSubstr("10.0.0.2  cut (rx)"));
  EXPECT_THAT(text, HasSubstr("10.0.0.3  cut  "));
}

TEST(StatusText, ReportsThatAllCountersAreZero) {
  FabricStatus status;
  status.switches.resize(1);
  status.switches[0].name = "s0";
  EXPECT_EQ(to_text(status, View::kCounters, false), "s0: all counters are 0\n");
}

TEST(StatusText, ShowsCountersWithThePortsThatCounted) {
  EXPECT_EQ(to_text(one_switch(), View::kCounters, false),
            "s0\n"
            "  READING              TOTAL  WHERE\n"
            "  drop_egress_full         4  h2 4\n"
            "  drop_not_member          5  h2 5\n"
            "  group_beside_bytes      99  198.18.0.1 99\n"
            "  group_copies           180  198.18.0.1 180\n"
            "  group_data_bytes    368640  198.18.0.1 368640\n"
            "  group_data_packets      90  198.18.0.1 90\n"
            "  group_lag_packets       12  198.18.0.1 12\n"
            "  group_paths              3  198.18.0.1 3\n"
            "  group_table_bytes      321  198.18.0.1 321\n"
            "  groups                   1\n"
            "  link_corrupted           2  to h0 2\n"
            "  link_dropped_loss        3  from h0 3\n"
            "  link_frames             90  from h0 90\n"
            "  rx_packets              93\n"
            "  rx_payload_bytes    368640  h0 368640\n"
            "  tombstones               1\n");
}

TEST(StatusText, ColoursOnlyForATerminal) {
  for (const View view : {View::kPorts, View::kGroups, View::kCounters}) {
    EXPECT_THAT(to_text(one_switch(), view, false), Not(HasSubstr("\033")));
    EXPECT_THAT(to_text(one_switch(), view, true), HasSubstr("\033["));
  }
}

TEST(StatusJson, ReadsBackWhatItWrites) {
  for (const FabricStatus& status : {one_switch(), two_switches(20, 12)}) {
    const nlohmann::json written = to_json(status);
    const auto back = status_from_json(nlohmann::json::parse(written.dump()));
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(to_json(*back), written);
    for (const View view : {View::kPorts, View::kGroups, View::kCounters}) {
      EXPECT_EQ(to_text(*back, view, false), to_text(status, view, false));
    }
  }
}

TEST(StatusJson, NamesLaggingMembersOfEachGroup) {
  const nlohmann::json written = to_json(one_switch());
  EXPECT_EQ(written["switches"][0]["groups"][0]["waiting_for"],
            nlohmann::json({{"names", {"h2"}}, {"packets", 12}}));
}

TEST(StatusJson, OfAnotherVersionIsAnErrorAndNoCrash) {
  nlohmann::json written = to_json(one_switch());
  written["switches"][0]["ports"][0].erase("link");
  EXPECT_THAT(status_from_json(written).error().text, HasSubstr("another version's"));
  EXPECT_FALSE(status_from_json(nlohmann::json("text")));
  EXPECT_FALSE(status_from_json(nlohmann::json::array()));
}

fabric::SenderGroupView sender_group() {
  fabric::SenderGroupView view;
  view.sender = wire::Ipv4(10, 0, 0, 1);
  view.alias = view.addressed = wire::Ipv4(10, 0, 0, 2);
  view.virtual_qpn = wire::Qpn(0xC00042);
  view.sender_qpn = wire::Qpn(0x11);
  view.epoch = 2;
  view.merges = true;
  view.branches = view.replicas = 2;
  view.data_packets = 3;
  view.copies = 6;
  view.rule_bytes = 33;
  view.merge_bytes = 42;
  fabric::SenderReceiverView known, unknown;
  known.host = wire::Ipv4(10, 0, 0, 2);
  known.qpn = wire::Qpn(0x22);
  known.is_known = true;
  known.acked = wire::Psn(7);
  known.lag = 1;
  known.regions = {{5, 0x1000, 64}};
  unknown.host = wire::Ipv4(10, 0, 0, 3);
  unknown.qpn = wire::Qpn(0x33);
  view.receivers = {known, unknown};
  return view;
}

TEST(Status, SenderGroupsComeBackFromJson) {
  FabricStatus status;
  status.switches.emplace_back().name = "s0";
  status.switches[0].sender_groups.push_back(sender_group());
  const auto back = status_from_json(to_json(status));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(to_json(*back), to_json(status));
  const fabric::SenderGroupView& view = back->switches[0].sender_groups.at(0);
  EXPECT_EQ(view.virtual_qpn, wire::Qpn(0xC00042));
  EXPECT_EQ(view.receivers.at(0).regions.at(0).length, 64u);
}

// Copies for two branches may pass one switch, which then has two records.
TEST(Status, RecordsOfOneSenderGroupCountSinceTheirOwnBaselines) {
  FabricStatus status;
  status.switches.emplace_back().name = "s0";
  auto& records = status.switches[0].sender_groups;
  records = {sender_group(), sender_group()};
  records[1].addressed = wire::Ipv4(10, 0, 0, 3);
  records[1].data_packets = 10;
  const FabricStatus baseline = status;
  records[0].data_packets += 1;
  records[1].data_packets += 2;
  subtract(status, baseline);
  EXPECT_EQ(records[0].data_packets, 1u);
  EXPECT_EQ(records[1].data_packets, 2u);
}

TEST(Status, SenderGroupsAreShownBySwitch) {
  FabricStatus status;
  status.switches.emplace_back().name = "s0";
  status.switches[0].sender_groups.push_back(sender_group());
  EXPECT_EQ(to_text(status, View::kGroups, false),
            "10.0.0.1 to 0xc00042  sender group\n"
            "  s0: merges feedback, a rule of 2 replicas; 3 packets, 6 copies; table 75 bytes; "
            "receivers 10.0.0.2 (qp 0x000022, 1 region, lags by 1 packet), 10.0.0.3 (qp 0x000033, "
            "unknown since this switch started)\n");
}

}  // namespace
}  // namespace cepheus::live
