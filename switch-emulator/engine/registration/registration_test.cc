#include "switch-emulator/engine/registration/registration.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using wire::MrpType;

TEST(Register, NamesEachHostToItselfAndNotTheLeader) {
  auto net = make_star(3, false);
  net->register_group(0, 1);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->inbox(1), Texts({"register e1 10.0.0.2"}));
  EXPECT_EQ(net->inbox(2), Texts({"register e1 10.0.0.3"}));
  EXPECT_EQ(net->view().paths.size(), 3u);
  EXPECT_FALSE(net->view().active);
}

TEST(Register, SendsOverATrunkOnlyTheMembersBehindIt) {
  auto net = make_pair_of_switches(false);
  Texts over;
  net->lose = [&](std::size_t, std::size_t, const std::string& t) {
    over.push_back(t);
    return false;
  };
  net->register_group(0, 1);
  EXPECT_EQ(over, Texts({"register e1 10.0.0.3 10.0.0.4"}));
  EXPECT_EQ(net->inbox(3), Texts({"register e1 10.0.0.4"}));
  EXPECT_TRUE(net->path_view(0).towards_leader);
  EXPECT_EQ(net->path_view(0).qpn, TestNetwork::qpn(0));
  EXPECT_EQ(net->view(1).paths.size(), 3u) << "two hosts and the way to the leader";
}

TEST(Register, TakesTheListInAnyNumberOfPacketsInAnyOrderAndTwice) {
  auto net = make_star(4, false);
  for (const auto& part : {std::vector<std::size_t>{2, 3}, {0, 1}, {2, 3}}) {
    net->register_group(0, 1, part);
  }
  EXPECT_EQ(net->inbox(3).size(), 2u) << "a repeat goes on: the first may have been lost";
  EXPECT_EQ(net->view().paths.size(), 4u);
  net->control(0, MrpType::kActivate, 1);
  net->clear();
  net->data(1, 0);
  EXPECT_EQ(net->inbox(0), Texts({"data 0"}));
}

TEST(Register, CarriesALongListThroughAnExternalPayload) {
  auto net = make_pair_of_switches(false);
  std::vector<wire::MrpMember> list{net->member(0)};
  for (int i = 0; i < 80; ++i) list.push_back(net->member(2 + i % 2));
  net->control(0, MrpType::kRegister, 1, list);
  EXPECT_EQ(net->sw(1).group_count(), 1u);
  EXPECT_EQ(net->count(Counter::kDropMalformed, 1), 0u);
}

TEST(Register, IsRefusedWithoutTableSpace) {
  auto net = make_star(2, false, [](SwitchConfig& c) { c.max_groups = 0; });
  net->register_group(0, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 table full"}));
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

TEST(Register, IsRefusedBeyondTheMostPathsAndNamesTheMember) {
  auto net = make_star(4, false, [](SwitchConfig& c) { c.max_paths = 3; });
  net->register_group(0, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 too many members behind one switch 10.0.0.4"}));
  EXPECT_EQ(net->sw(0).group_count(), 0u) << "all or nothing";
}

TEST(Register, OfAnotherVersionIsRefusedInThatVersion) {
  auto net = make_star(2, false);
  const std::vector<wire::MrpMember> members{net->member(0), net->member(1)};
  auto bytes = TestNetwork::control_bytes(0, MrpType::kRegister, 1, members);
  constexpr std::size_t kVersionAt = wire::kBthOffset;
  bytes[kVersionAt] = 1;
  bytes[kVersionAt - 2] = bytes[kVersionAt - 1] = 0;  // no UDP checksum
  net->inject_bytes(0, bytes);
  EXPECT_EQ(net->count(Counter::kDropMalformed), 1u);
  EXPECT_EQ(net->count(Counter::kMrpReject), 1u);
  ASSERT_EQ(net->frames(0).size(), 1u);
  const auto& answer = net->frames(0)[0];
  ASSERT_EQ(answer.size(), wire::kBthOffset + wire::MrpHeader::kSize);
  EXPECT_EQ(answer[kVersionAt], 1);
  EXPECT_EQ(answer[kVersionAt + 1], static_cast<std::uint8_t>(MrpType::kReject));
  EXPECT_EQ(answer[kVersionAt + 3], static_cast<std::uint8_t>(wire::MrpReject::kVersion));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

// A switch splits long messages so that the signature fits.
TEST(Register, OfManyMembersIsSplitReportedAndEvictedUnderAKey) {
  const auto key = std::make_shared<const wire::MrpKey>(
      *wire::MrpKey::parse("000102030405060708090a0b0c0d0e0f"));
  auto net = make_star(200, true, [&](SwitchConfig& c) { c.mrp_key = key; });
  EXPECT_TRUE(net->view().active);
  std::vector<wire::MrpMember> gone;
  for (std::size_t h = 100; h < 200; ++h) {
    net->set_port(0, net->port_of(h), false);
    gone.push_back(net->member(h));
  }
  net->clear();
  net->control(0, MrpType::kQuery, 1);
  const auto report = net->frames(0).at(0);
  ASSERT_EQ(net->inbox(0).at(0).substr(0, 19), "report e1 10.0.0.10") << "signed, and not empty";
  EXPECT_GT(report.size(), 1400u);
  gone.resize(wire::MrpMessage::kMaxMembers);
  net->control(0, MrpType::kEvict, 1, gone);
  EXPECT_EQ(net->inbox(0).at(0).substr(0, 21), "confirm e1 10.0.0.101");
  EXPECT_EQ(net->view().paths.size(), 200u - wire::MrpMessage::kMaxMembers);
}

TEST(Register, IsRefusedWithoutARouteAndNamesTheMember) {
  auto net = make_pair_of_switches(false);
  net->control(0, MrpType::kRegister, 1,
               {net->member(0), net->member(2), {Ipv4(10, 9, 9, 9), Qpn(5), 0}});
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 no route 10.9.9.9"}));
  net->set_port(0, net->port_of(1), false);
  net->register_group(0, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 no route 10.0.0.2"}));
  EXPECT_EQ(net->sw(1).group_count(), 0u);
}

TEST(Register, IsRefusedByAFarSwitchToo) {
  auto net = make_pair_of_switches(false);
  net->set_port(1, net->port_of(3), false);
  net->register_group(0, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 no route 10.0.0.4"}));
  EXPECT_EQ(net->count(Counter::kMrpReject, 0), 1u) << "counted where it passes";
}

TEST(Register, IsRefusedIfMalformed) {
  auto net = make_star(2, false);
  net->control(0, MrpType::kRegister, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 malformed request"}));
  net->control(0, MrpType::kRegister, 1, {net->member(0), {TestNetwork::ip(1), Qpn(0), 0}});
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 malformed request 10.0.0.2"}));
  net->control(0, MrpType::kRegister, 1, {net->member(1), {TestNetwork::ip(1), Qpn(9), 0}});
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 malformed request 10.0.0.2"}))
      << "one queue pair a host";
}

TEST(Register, IsRefusedWhileAnotherLeaderHasTheId) {
  auto net = make_star(3);
  net->register_group(1, 5);
  EXPECT_EQ(net->inbox(1), Texts({"reject e5 group id in use"}));
  net->control(0, MrpType::kRegister, 5, {net->member(0)}, 2);  // another process of that host
  EXPECT_EQ(net->inbox(0), Texts({"reject e5 group id in use"}));
  EXPECT_EQ(net->view().epoch, 1u);
}

TEST(Register, OfTheRunningEpochTouchesNothing) {
  auto net = make_star_amid(3, 0);
  net->register_group(0, 1);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 1u);
  net->ack({1, 2}, 0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
}

// The switch missed UNREGISTER of the old one.
TEST(Epochs, ANewerOneReplacesARunningOne) {
  auto net = make_star(3);
  net->register_group(0, 2);
  EXPECT_EQ(net->sw(0).group_count(), 1u);
  EXPECT_FALSE(net->view().active);
  net->clear();
  net->data(0, 0);
  EXPECT_EQ(net->inbox(1), Texts()) << "the old one has ended";
  net->control(0, MrpType::kActivate, 2);
  EXPECT_EQ(net->view().epoch, 2u);
  net->clear();
  net->epoch = 2;
  net->data(2, 0);
  EXPECT_EQ(net->inbox(0), Texts({"data 0"}));
}

TEST(Epochs, AnAttemptToReplaceARunningOneCanBeGivenUp) {
  auto net = make_star(2);
  net->register_group(0, 2);
  net->control(0, MrpType::kUnregister, 2);
  EXPECT_EQ(net->sw(0).group_count(), 0u);
  EXPECT_EQ(net->sw(0).tombstone_count(), 1u);
  net->clear();
  net->epoch = 2;
  net->confirm(1, MrpType::kUnregister);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e2 10.0.0.2"}));
}

TEST(Epochs, AnOlderOneIsDropped) {
  auto net = make_star(2, false);
  net->set_up_group(0, 7);
  for (const MrpType type : {MrpType::kRegister, MrpType::kActivate, MrpType::kUnregister}) {
    net->control(0, type, 6, {net->member(0), net->member(1)});
  }
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->view().epoch, 7u);
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 3u);
}

// Epochs are on a circle of 16 bits: 0 follows 65535. The tombstone of the last one also lets the
// next one pass and no older one.
TEST(Epochs, GoOnWhereTheyWrap) {
  auto net = make_star(3, false);
  net->set_up_group(0, 65534);
  for (const std::uint16_t epoch : {65535, 0, 1}) {
    const auto last = static_cast<std::uint16_t>(epoch - 1);
    net->register_group(0, epoch);
    net->control(0, MrpType::kActivate, last);
    EXPECT_FALSE(net->view().active) << "the newer one has replaced it";
    net->control(0, MrpType::kActivate, epoch);
    EXPECT_EQ(net->sw(0).group_count(), 1u);
    EXPECT_EQ(net->view().epoch, epoch);
    const std::uint64_t stale = net->count(Counter::kDropMrpStale);
    net->register_group(0, last);
    EXPECT_EQ(net->count(Counter::kDropMrpStale), stale + 1);
    net->clear();
    net->epoch = epoch;
    net->data(0, 0);
    for (const std::size_t host : {1, 2}) {
      EXPECT_EQ(net->inbox(host), Texts({"data 0"}));
      net->ack(host, 0);
    }
    EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  }
  net->control(0, MrpType::kUnregister, 1);
  ASSERT_EQ(net->sw(0).tombstone_count(), 1u);
  const std::uint64_t stale = net->count(Counter::kDropMrpStale);
  net->register_group(0, 65535);
  EXPECT_EQ(net->sw(0).group_count(), 0u);
  EXPECT_EQ(net->count(Counter::kDropMrpStale), stale + 1);
}

TEST(Activate, LetsDataFlowAndNotBefore) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  net->clear();
  net->data(0, 0);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropNotActive), 1u);
  net->control(0, MrpType::kActivate, 1);
  for (const std::size_t h : {1, 2, 3}) EXPECT_EQ(net->inbox(h), Texts({"activate e1"}));
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST(Activate, IsPassedOnAgainWhenRepeated) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  net->clear();
  net->lose = [](std::size_t, std::size_t, const std::string&) { return true; };
  net->control(0, MrpType::kActivate, 1);
  EXPECT_EQ(net->inbox(2), Texts());
  net->lose = nullptr;
  net->control(0, MrpType::kActivate, 1);
  EXPECT_EQ(net->inbox(2), Texts({"activate e1"}));
}

// For example, it restarted after it had confirmed for a member: the leader does not name that
// member again. Without its path messages would complete that it lacks.
TEST(Activate, IsRefusedByASwitchThatDoesNotKnowAllMembersBehindIt) {
  for (const MrpType step : {MrpType::kConnect, MrpType::kActivate}) {
    auto net = make_pair_of_switches(false);
    net->lose = [](std::size_t, std::size_t, const std::string&) { return true; };
    net->register_group(0, 1, {0, 3});
    net->lose = nullptr;
    net->register_group(0, 1, {0, 1, 2});
    net->clear();
    net->control(0, step, 1);
    EXPECT_EQ(net->inbox(0), Texts({"reject e1 members are missing in the table"}));
    EXPECT_EQ(net->inbox(2), Texts());
    EXPECT_FALSE(net->view(1).active);
  }
}

TEST(Activate, IsRefusedIfTheLeaderIsNoMember) {
  auto net = make_star(3, false);
  net->register_group(0, 1, {1, 2});
  net->control(0, MrpType::kActivate, 1);
  // Without a name: a leader believes no REJECT about itself.
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 malformed request"}));
  EXPECT_FALSE(net->view().active);
}

TEST(Control, FromOthersThanTheLeaderIsForeign) {
  auto net = make_star(3);
  for (const MrpType type : {MrpType::kActivate, MrpType::kUnregister, MrpType::kRefresh}) {
    net->control(1, type, 1);
    net->control(0, type, 1, {}, 9);
  }
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 6u);
  EXPECT_EQ(net->sw(0).group_count(), 1u);
  EXPECT_EQ(net->inbox(2), Texts());
}

TEST(Control, UnderAnotherAddressThanThePortsIsSpoofed) {
  auto net = make_star(3);
  const auto payload = wire::bytes_of(wire::mrp_message(MrpType::kUnregister, TestNetwork::kGroup));
  wire::UdpDatagram datagram;
  datagram.ip.source = TestNetwork::ip(0);
  datagram.ip.destination = TestNetwork::kGroup;
  datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  Frame frame;
  datagram.emit(frame, payload);
  net->inject(2, frame);
  EXPECT_EQ(net->count(Counter::kDropSpoofedSource), 1u);
  EXPECT_EQ(net->sw(0).group_count(), 1u);
}

TEST(Ageing, FreesAnUnusedGroup) {
  auto net = make_pair_of_switches();
  net->advance(minutes(9));
  net->data(0, 0);
  net->advance(minutes(9));
  EXPECT_EQ(net->sw(0).group_count(), 1u);
  net->control(0, MrpType::kRefresh, 1);
  net->advance(minutes(9));
  EXPECT_EQ(net->sw(1).group_count(), 1u) << "a refresh goes to switches behind";
  net->clear();
  net->advance(minutes(2));
  EXPECT_EQ(net->sw(0).group_count() + net->sw(1).group_count(), 0u);
  EXPECT_EQ(net->count(Counter::kStaleTableAged), 1u);
  EXPECT_EQ(net->inbox(1).front(), "unregister e1");
}

TEST(Ageing, ForgetsAGroupSoonAfterItsLeadersPortIsDown) {
  auto net = make_pair_of_switches();
  net->set_port(0, net->port_of(0), false);
  net->advance(seconds(1));
  EXPECT_EQ(net->sw(0).group_count(), 1u);
  net->set_port(0, net->port_of(0), true);
  net->control(0, MrpType::kRefresh, 1);
  net->advance(seconds(9));
  EXPECT_EQ(net->sw(0).group_count(), 1u) << "it came back in time";
  net->set_port(0, net->port_of(0), false);
  net->advance(seconds(5));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
  EXPECT_EQ(net->sw(1).group_count(), 0u) << "switches behind get UNREGISTER";
  EXPECT_EQ(net->inbox(3), Texts({"unregister e1"}));
}

TEST(Ageing, AnotherMembersPortDownIsNotTheLeaders) {
  auto net = make_star(3);
  net->set_port(0, net->port_of(2), false);
  net->advance(seconds(30));
  EXPECT_EQ(net->sw(0).group_count(), 1u);
}

TEST(Ageing, SpuriousTimersAreHarmless) {
  auto net = make_star(2);
  SwitchOutput out;
  net->sw(0).on_timer(net->now(), out);
  EXPECT_TRUE(out.emits.empty());
  EXPECT_EQ(net->sw(0).group_count(), 1u);
}

}  // namespace
}  // namespace cepheus::fabric
