// Sender groups on connected switches: data and feedback by the packet (docs/protocol.md, "Sender
// groups").
#include "switch-emulator/engine/mcrdma/sender_groups.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"
#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(SenderGroups, EveryReceiverSeesAConnectionOfItsOwn) {
  auto [net, group] = set_up_star(4, {1, 2, 3});
  group.data(0);
  for (const std::size_t r : {1, 2, 3}) {
    const auto h = group.received(r);
    EXPECT_EQ(h.ip.source, TestNetwork::ip(0));
    EXPECT_EQ(h.ip.destination, TestNetwork::ip(r));
    EXPECT_EQ(h.bth.destination_qp, TestNetwork::qpn(r));
    EXPECT_EQ(h.bth.psn, net->start_psn());
    EXPECT_EQ(h.ethernet.destination, wire::mac_for(TestNetwork::ip(r)));
  }
  EXPECT_EQ(group.at_sender(), Texts());
}

TEST(SenderGroups, DataGoesAsFarAsItsTimeToLiveAllows) {
  auto [net, group] = set_up_star(3, {1, 2});
  for (const std::uint8_t ttl : {1, 2}) {
    auto h = group.from_sender(wire::Opcode::kRcSendOnly, ttl - 1);
    h.ip.ttl = ttl;
    net->inject(0, net->make_frame(0, h, 8));
  }
  for (const std::size_t r : {1, 2}) EXPECT_EQ(net->inbox(r), Texts({"data 1"}));
  EXPECT_EQ(net->count(Counter::kDropCopyTtl), 2u);
}

TEST(SenderGroups, TheSenderGetsTheMinimumFromItsAlias) {
  auto [net, group] = set_up_star(4, {1, 2, 3});
  for (int psn = 0; psn < 6; ++psn) group.data(psn);
  group.ack(1, 4);
  group.ack(2, 2);
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(3, 5);
  EXPECT_EQ(group.at_sender(), Texts({"ack 2"}));  // no more, whichever receiver is last
  group.ack(2, 4);                                 // the paper's example: 4, 2, 5, then 4
  const auto h = group.received(0);
  EXPECT_EQ(h.ip.source, TestNetwork::ip(1));
  EXPECT_EQ(h.bth.destination_qp, TestNetwork::qpn(0));
  EXPECT_EQ(group.at_sender(), Texts({"ack 4"}));
  EXPECT_EQ(net->count(Counter::kSenderFeedbackAbsorbed), 2u);
  group.ack(2, 4);  // a repeat is passed: the answer may have been lost
  group.ack(3, 5);
  EXPECT_EQ(group.at_sender(), Texts({"ack 4"}));
}

TEST(SenderGroups, ANakNamesTheFirstPacketThatAReceiverLacks) {
  auto [net, group] = set_up_star(4, {1, 2, 3});
  for (int psn = 0; psn < 7; ++psn) group.data(psn);
  group.ack(1, 1);
  group.ack(2, 2);
  group.ack(3, 5);
  EXPECT_EQ(group.at_sender(), Texts({"ack 1"}));
  group.nak(2, 4);  // the paper's example: 1, 2, 5, then NAK 4
  EXPECT_EQ(group.received(0).aeth.msn, 1u);
  EXPECT_EQ(group.at_sender(), Texts({"nak 2"}));
  // The sender has got a request for it; another one would spend a retry.
  group.nak(1, 2);
  EXPECT_EQ(group.at_sender(), Texts());
  group.data(2);
  group.nak(1, 2);  // sent before that arrived
  EXPECT_EQ(group.at_sender(), Texts());
}

TEST(SenderGroups, RepeatedPacketsGetNoNakAndLostRepeatsGetOneLater) {
  auto [net, group] = set_up_star(4, {1, 2, 3});
  for (int psn = 0; psn < 7; ++psn) group.data(psn);
  group.nak(1, 1);
  EXPECT_EQ(group.at_sender(), Texts({"nak 0"}));
  group.nak(2, 5);
  group.nak(3, 4);
  EXPECT_EQ(group.at_sender(), Texts());  // all from 0 on are repeated
  for (int psn = 0; psn < 7; ++psn) group.data(psn);
  group.nak(3, 4);  // lost again, while another has answered nothing yet
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(1, 6);
  EXPECT_EQ(group.at_sender(), Texts({"nak 4"}));  // all have what is before it
  for (int psn = 4; psn < 7; ++psn) group.data(psn);
  group.ack({2, 3}, 6);
  EXPECT_EQ(group.at_sender(), Texts({"ack 6"}));
}

TEST(SenderGroups, WaitsAndErrorsAcknowledgeNoMoreThanTheMinimum) {
  auto [net, group] = set_up_star(3, {1, 2});
  for (int psn = 0; psn < 4; ++psn) group.data(psn);
  group.ack(1, 0);
  group.rnr(2, 3, 12);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 1 t12"}));
  group.rnr(1, 1, 12);  // sent before the repeat
  EXPECT_EQ(group.at_sender(), Texts());
  group.data(1);
  group.rnr(1, 1, 12);  // still no receive is posted
  EXPECT_EQ(group.at_sender(), Texts({"rnr 1 t12"}));
  group.feedback(1, 3, wire::AckKind::kNak, 2);
  EXPECT_EQ(group.at_sender(), Texts({"fatal 1 c2"}));  // it acknowledges nothing of host 1's
}

TEST(SenderGroups, LateFeedbackTakesNothingBack) {
  auto [net, group] = set_up_star(3, {1, 2});
  for (int psn = 0; psn < 4; ++psn) group.data(psn);
  group.ack(1, 3);
  group.ack(1, 0);  // overtaken
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(2, 3);
  EXPECT_EQ(group.at_sender(), Texts({"ack 3"}));
}

TEST(SenderGroups, FeedbackForPacketsNeverSentIsDropped) {
  auto net = make_star(4, false);
  net->set_port(0, net->port_of(1), true);  // the switch's start
  net->advance(2s);                         // no INSTALL is from before it
  TestSender group(*net, 0, {1, 2, 3});
  group.set_up();
  group.ack(1, 0);  // before the first packet
  group.data(0);
  group.ack(1, 5'000'000);
  group.nak(2, 9);
  group.nak(2, 1);  // no packet behind it has shown the receiver that it lacks 1
  for (int psn = 1; psn < 4; ++psn) group.data(psn);
  group.ack({2, 3}, 3);
  EXPECT_EQ(group.at_sender(), Texts());  // host 1 has acknowledged nothing
  EXPECT_EQ(net->count(Counter::kDropFeedbackUnsent), 4u);
  for (const std::size_t r : {1, 2, 3}) group.ack(r, 9);
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(1, 2);
  EXPECT_EQ(group.at_sender(), Texts({"ack 2"}));
}

TEST(SenderGroups, ReservedSyndromesAndNakCodesReachNoSender) {
  auto [net, group] = set_up_star(3, {1, 2});
  group.data(0);
  for (std::uint8_t code = 5; code < 32; ++code) group.feedback(1, 0, wire::AckKind::kNak, code);
  group.feedback(1, 0, static_cast<wire::AckKind>(2), 0);
  EXPECT_EQ(group.at_sender(), Texts());
  EXPECT_EQ(net->count(Counter::kDropMalformed), 28u);
  group.ack(2, 0);
  EXPECT_EQ(group.at_sender(), Texts());  // they acknowledge nothing
  group.ack(1, 0);
  EXPECT_EQ(group.at_sender(), Texts({"ack 0"}));
}

// More than 2^24 packets: old requests and owed acknowledgements would look new again.
TEST(SenderGroups, MayBeOfAnyLength) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  const auto round = [&](std::int64_t psn) {
    group.data(psn);
    group.ack({1, 2}, psn);
  };
  for (int psn = 0; psn < 4; ++psn) group.data(psn);
  group.nak(1, 2);
  EXPECT_EQ(group.at_sender(), Texts({"nak 0"}));
  for (int psn = 0; psn < 3; ++psn) group.data(psn);
  group.data_to_acknowledge(3);
  group.ack({1, 2}, 3);
  EXPECT_EQ(group.at_sender(), Texts({"ack 3"}));
  constexpr std::int64_t kStep = 1 << 22, kWrap = 1 << 24;
  for (std::int64_t psn = kStep; psn < kWrap; psn += kStep) round(psn);
  net->clear();
  round(kWrap - 1);
  EXPECT_EQ(group.at_sender(), Texts({"ack -1"}));
  net->advance(std::chrono::seconds(1));
  EXPECT_EQ(group.at_sender(), Texts());  // nothing is overdue
  for (int psn = 0; psn < 4; ++psn) group.data(kWrap + psn);
  group.nak(1, kWrap + 2);
  EXPECT_EQ(net->inbox(0).size(), 1u);  // a packet that was not requested in this round
}

TEST(SenderGroups, FeedbackOfStrangersIsDropped) {
  auto [net, group] = set_up_star(4, {1, 2});
  group.data(0);
  group.ack(3, 0);
  EXPECT_EQ(group.at_sender(), Texts());
  EXPECT_EQ(net->count(Counter::kDropNotMember), 1u);
}

TEST(SenderGroups, NotificationsComeInTheAliasesNameAlsoForEchoes) {
  auto [net, group] = set_up_star(3, {1, 2});
  group.data(0);
  group.cnp(2);
  EXPECT_EQ(group.received(0).ip.source, TestNetwork::ip(1));
  EXPECT_EQ(group.at_sender(), Texts({"cnp"}));
  group.feedback(1, 0, wire::AckKind::kAck, 31, true);
  EXPECT_EQ(group.at_sender(), Texts()) << "host 2 is the worst receiver";
  EXPECT_EQ(net->count(Counter::kEchoFiltered), 1u);
  group.feedback(2, 0, wire::AckKind::kAck, 31, true);
  EXPECT_FALSE(wire::RoceHeaders::parse(*Frame::from_bytes(net->frames(0).at(1)))->bth.becn);
  EXPECT_EQ(group.at_sender(), Texts({"cnp", "ack 0"}));
}

TEST(SenderGroups, ARepeatedInstallLeavesTheChoiceOfTheWorstReceiver) {
  auto [net, group] = set_up_star(4, {1, 2, 3});
  group.cnp(2);
  EXPECT_EQ(group.at_sender(), Texts({"cnp"}));
  group.install(false);
  net->clear();
  group.cnp(1);
  EXPECT_EQ(group.at_sender(), Texts());
  group.cnp(2);
  EXPECT_EQ(group.at_sender(), Texts({"cnp"}));
}

TEST(SenderGroups, OnlySwitchesThatBranchHaveRules) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 4, 6});  // leaf 1 twice, leaf 2
  group.set_up();
  const auto has_rule = [&](std::size_t s) {
    return net->sw(s).sender_groups().at(0).replicas > 0;
  };
  EXPECT_FALSE(has_rule(0));  // all of it goes up, over either spine
  EXPECT_TRUE(has_rule(3));
  EXPECT_TRUE(has_rule(4));
  EXPECT_TRUE(has_rule(1));
  EXPECT_TRUE(net->sw(2).sender_groups().empty());  // the spine has set host 6's number
  group.data(0);
  for (const std::size_t r : {3, 4, 6}) EXPECT_EQ(net->inbox(r), Texts({"data 0"}));
  EXPECT_EQ(net->count(Counter::kDataCopies, 0), 0u);
}

TEST(SenderGroups, AreShownWithTheirReceivers) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.regions = {{1, {7, 0x55, 0x1000, 64}}};
  group.set_up();
  for (int psn = 0; psn < 3; ++psn) group.data(psn);
  group.ack(1, 2);
  group.ack(2, 0);
  const SenderGroupView view = net->sw(0).sender_groups().at(0);
  EXPECT_EQ(view.sender, TestNetwork::ip(0));
  EXPECT_EQ(view.alias, TestNetwork::ip(1));
  EXPECT_EQ(view.addressed, TestNetwork::ip(1));
  EXPECT_EQ(view.virtual_qpn, TestSender::kVirtual);
  EXPECT_EQ(view.sender_qpn, TestNetwork::qpn(0));
  EXPECT_EQ(view.epoch, 1);
  EXPECT_TRUE(view.merges);
  EXPECT_EQ(view.branches, 2u);
  EXPECT_EQ(view.replicas, 2u);
  EXPECT_EQ(view.data_packets, 3u);
  EXPECT_EQ(view.copies, 6u);
  EXPECT_EQ(view.rule_bytes, 11u + 2 * 11);
  EXPECT_EQ(view.merge_bytes, AckMerge::kGroupBytes + 2 * AckMerge::kReceiverBytes);
  ASSERT_EQ(view.receivers.size(), 2u);
  for (const std::size_t i : {0, 1}) {
    const SenderReceiverView& receiver = view.receivers[i];
    EXPECT_EQ(receiver.host, TestNetwork::ip(i + 1));
    EXPECT_EQ(receiver.qpn, TestNetwork::qpn(i + 1));
    EXPECT_TRUE(receiver.is_known);
    EXPECT_EQ(receiver.acked, net->start_psn() + (i == 0 ? 2 : 0));
    EXPECT_EQ(receiver.lag, i == 0 ? 0u : 2u);
    EXPECT_EQ(receiver.regions.size(), i);
  }
  EXPECT_EQ(view.receivers[1].regions[0].number, 7);
  EXPECT_EQ(view.receivers[1].regions[0].virtual_address, 0x1000u);
  EXPECT_EQ(view.receivers[1].regions[0].length, 64u);
}

TEST(SenderGroups, OnlyRacksBranchUnderOrdinarySpines) {
  auto net = make_leaf_spine(net::SenderGroups::kRacks);
  TestSender group(*net, 0, {3, 4, 6, 1});
  group.set_up();
  EXPECT_TRUE(net->sw(3).sender_groups().empty() && net->sw(4).sender_groups().empty());
  group.data(0);
  for (const std::size_t r : {3, 4, 6, 1}) EXPECT_EQ(net->inbox(r), Texts({"data 0"}));
  EXPECT_EQ(net->count(Counter::kDataCopies, 0), 3u);  // a copy for each rack, one for its own host
  for (const std::size_t r : {3, 4, 6, 1}) group.ack(r, 0);
  EXPECT_EQ(group.at_sender(), Texts({"ack 0"}));
}

TEST(SenderGroups, DataWithoutARuleReachesNoQueuePair) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.data(0);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropUnrewritten), 1u);
}

TEST(SenderGroups, ARestartedSwitchAcknowledgesNothingUntilAllHaveAnswered) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);  // as in a repeat to a switch that knows nothing
  net->clear();
  for (int psn = 100; psn < 104; ++psn) group.data(psn);
  group.ack(1, 103);
  group.nak(1, 104);
  EXPECT_EQ(group.at_sender(), Texts());
  EXPECT_EQ(net->count(Counter::kSenderFeedbackWithheld), 2u);
  group.ack(2, 102);
  EXPECT_EQ(group.at_sender(), Texts({"ack 102"}));
}

TEST(SenderGroups, ARestartedSwitchAcceptsAcknowledgementsOfPacketsItMissed) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);
  net->clear();
  group.ack(1, 9);
  EXPECT_EQ(net->count(Counter::kDropFeedbackUnsent), 1u);
  group.data(5);  // again; 6 to 9 were sent before the restart
  for (int answers = 0; answers < 2; ++answers) {
    group.ack({1, 2}, 9);
  }
  EXPECT_EQ(group.at_sender(), Texts({"ack 5", "ack 5", "ack 5"}));
  group.nak(1, 9);  // requests a packet that this switch has not seen
  EXPECT_EQ(group.at_sender(), Texts());
}

// Both receivers have packets that the switch passed before its restart.
void expect_repeat_is_acknowledged(TestNetwork& net, TestSender& group) {
  net.clear();
  group.data(5);  // again; 6 to 9 were sent before the restart
  group.ack(1, 9);
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(2, 9);
  EXPECT_EQ(group.at_sender(), Texts({"ack 5"}));
}

TEST(SenderGroups, ARestartedSwitchIgnoresAFirstInstallThatComesLate) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);
  group.install();  // sent before the restart
  expect_repeat_is_acknowledged(*net, group);
}

TEST(SenderGroups, AFirstInstallSoonAfterTheStartMayBeFromBeforeIt) {
  for (const Duration late : {Duration(0), net::SwitchConfig().sender_lives}) {
    auto net = make_star(3, false);
    net->set_port(0, net->port_of(1), true);  // the switch's start
    net->advance(late);
    TestSender group(*net, 0, {1, 2});
    group.install();  // sent before the restart
    expect_repeat_is_acknowledged(*net, group);
  }
}

// Packets behind the first one passed before the restart, and the first was lost.
TEST(SenderGroups, ARestartedSwitchPassesANakForTheFirstPacket) {
  auto [net, group] = set_up_star(3, {1, 2});
  group.nak(1, 0);
  EXPECT_EQ(group.at_sender(), Texts({"nak 0"}));
  group.nak(1, 1);
  EXPECT_EQ(group.at_sender(), Texts()) << "the first has not passed";
}

// The switch can't install the group with that receiver, and needs no list without it.
TEST(SenderGroups, ARestartedSwitchReportsAReceiverWithItsPortDown) {
  auto net = make_star(3, false);
  net->set_port(0, net->port_of(2), false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);
  ASSERT_EQ(group.messages_to(0).size(), 1u);
  const auto report = group.messages_to(0)[0];
  EXPECT_EQ(report.header.type, wire::MrpType::kReport);
  ASSERT_EQ(report.receiver_count, 1u);
  EXPECT_EQ(report.receivers[0].host, TestNetwork::ip(2));
  EXPECT_EQ(report.receivers[0].flags, wire::kMemberDown);
}

// Its sender waits longer and longer between two repeats: three may never come.
TEST(SenderGroups, ARestartedSwitchTreatsMissedPacketsAsSentBefore) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);
  for (int repeat = 0; repeat < 2; ++repeat) {
    net->advance(1ms);
    group.data(5);
    group.ack(1, 5);
  }
  net->clear();
  group.query();
  ASSERT_EQ(group.messages_to(0).size(), 1u);
  const auto report = group.messages_to(0)[0];
  ASSERT_EQ(report.receiver_count, 1u);
  EXPECT_EQ(report.receivers[0].host, TestNetwork::ip(2));
  EXPECT_EQ(report.receivers[0].flags, wire::kMemberOwes);
}

TEST(SenderGroups, AnInstallInTheSendersNameByATrunkChangesNothingAtItsSwitch) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {1, 4});
  group.set_up();
  group.set_receivers({1});
  const auto forged =
      group.datagram_of(0, group.message(wire::MrpType::kInstall), TestNetwork::ip(1));
  net->inject_at(0, net->port_between(0, 3), forged);
  EXPECT_EQ(net->count(Counter::kDropMrpForged), 1u);
  group.data(0);
  group.ack(1, 0);
  EXPECT_EQ(group.at_sender(), Texts()) << "the other receiver has not answered";
  group.ack(4, 0);
  EXPECT_EQ(group.at_sender(), Texts({"ack 0"}));
}

TEST(SenderGroups, AWriteWithoutDataNeedsNoRegion) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 6});
  group.set_up();
  group.write(0, 99, 0x40, 0);
  for (const std::size_t r : {3, 6}) EXPECT_EQ(net->inbox(r), Texts({"data 0"})) << r;
  EXPECT_EQ(group.at_sender(), Texts());
}

TEST(SenderGroups, AWriteHasEachReceiversOwnAddressAndKey) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 6});
  group.regions = {{0, {5, 0x1111, 0x10000, 4096}}, {1, {5, 0x2222, 0x20000, 4096}}};
  group.set_up();
  group.write(0, 5, 0x40, 64);
  EXPECT_EQ(group.received(3).reth, (wire::Reth{0x10040, 0x1111, 64}));
  EXPECT_EQ(group.received(6).reth, (wire::Reth{0x20040, 0x2222, 64}));
}

TEST(SenderGroups, AWriteBeyondARegionReachesNoOtherReceiver) {
  for (const auto how : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    auto net = make_leaf_spine(how);
    TestSender group(*net, 0, {3, 4, 6});
    group.regions = {
        {0, {5, 1, 0x10000, 4096}}, {1, {5, 2, 0x20000, 64}}, {2, {5, 3, 0x30000, 4096}}};
    group.set_up();
    group.write(0, 5, 32, 64);  // host 4 has 64 bytes
    EXPECT_EQ(net->inbox(3), Texts({"data 0"}));
    EXPECT_EQ(net->inbox(4), Texts());
    EXPECT_EQ(group.at_sender(), Texts({"fatal 0 c2"}));
    group.write(1, 9, 0, 64);  // no receiver has a region 9
    EXPECT_EQ(net->inbox(6).back(), "data 0");
  }
}

TEST(SenderGroups, ReadsAndAtomicsAreRefusedAndAcknowledgeNothing) {
  auto [net, group] = set_up_star(3, {1, 2});
  group.data(0);
  group.request(wire::Opcode::kRcReadRequest, 1);
  EXPECT_EQ(group.at_sender(), Texts({"fatal 0 c1"}));
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

}  // namespace
}  // namespace cepheus::fabric
