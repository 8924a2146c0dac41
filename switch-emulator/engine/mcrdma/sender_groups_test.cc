// Sender groups on switches that are connected: data, feedback and registration by the packet
// (docs/protocol.md, "Sender groups").
#include "switch-emulator/engine/mcrdma/sender_groups.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"
#include "wire/icrc.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// Leaves 0, 1 and 2 under spines 3 and 4, three hosts at each leaf: host 3 l + i is at leaf l.
std::unique_ptr<TestNetwork> make_leaf_spine(
    net::SenderGroups how = net::SenderGroups::kEverywhere,
    const std::function<void(SwitchConfig&)>& change = {}) {
  auto net = std::make_unique<TestNetwork>();
  for (int s = 0; s < 5; ++s) net->add_switch();
  for (std::size_t leaf = 0; leaf < 3; ++leaf) {
    for (const std::size_t spine : {3, 4}) net->link(leaf, spine);
  }
  for (std::size_t h = 0; h < 9; ++h) net->add_host(h / 3);
  for (std::size_t s = 0; s < 5; ++s) {
    net->config(s).sender_groups = how;
    if (change) change(net->config(s));
  }
  net->start();
  return net;
}

TEST(SenderGroups, EveryReceiverSeesAConnectionOfItsOwn) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2, 3});
  group.set_up();
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

TEST(SenderGroups, TheSenderHearsWhatAllHaveAcknowledgedFromItsAlias) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2, 3});
  group.set_up();
  for (int psn = 0; psn < 6; ++psn) group.data(psn);
  group.ack(1, 4);
  group.ack(2, 2);
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(3, 5);
  EXPECT_EQ(group.at_sender(), Texts({"ack 2"}));  // no more, whoever says so last
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

TEST(SenderGroups, ANakAsksForTheFirstPacketThatAnybodyLacks) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2, 3});
  group.set_up();
  for (int psn = 0; psn < 7; ++psn) group.data(psn);
  group.ack(1, 1);
  group.ack(2, 2);
  group.ack(3, 5);
  EXPECT_EQ(group.at_sender(), Texts({"ack 1"}));
  group.nak(2, 4);  // the paper's example: 1, 2, 5, then NAK 4
  EXPECT_EQ(group.received(0).aeth.msn, 1u);
  EXPECT_EQ(group.at_sender(), Texts({"nak 2"}));
  // It has been asked for it; another one would spend a retry.
  group.nak(1, 2);
  EXPECT_EQ(group.at_sender(), Texts());
  group.data(2);
  group.nak(1, 2);  // said before that came
  EXPECT_EQ(group.at_sender(), Texts());
}

TEST(SenderGroups, WhatComesAgainIsNotAskedForAndWhatIsLostAgainIsInItsTurn) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2, 3});
  group.set_up();
  for (int psn = 0; psn < 7; ++psn) group.data(psn);
  group.nak(1, 1);
  EXPECT_EQ(group.at_sender(), Texts({"nak 0"}));
  group.nak(2, 5);
  group.nak(3, 4);
  EXPECT_EQ(group.at_sender(), Texts());  // all from 0 on comes again
  for (int psn = 0; psn < 7; ++psn) group.data(psn);
  group.nak(3, 4);  // lost again, while another has answered nothing yet
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(1, 6);
  EXPECT_EQ(group.at_sender(), Texts({"nak 4"}));  // all have what is before it
  for (int psn = 4; psn < 7; ++psn) group.data(psn);
  group.ack(2, 6);
  group.ack(3, 6);
  EXPECT_EQ(group.at_sender(), Texts({"ack 6"}));
}

TEST(SenderGroups, WaitsAndErrorsAcknowledgeNoMoreThanAllHave) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  for (int psn = 0; psn < 4; ++psn) group.data(psn);
  group.ack(1, 0);
  group.rnr(2, 3, 12);
  EXPECT_EQ(group.at_sender(), Texts({"rnr 1 t12"}));
  group.rnr(1, 1, 12);  // said before it has come again
  EXPECT_EQ(group.at_sender(), Texts());
  group.data(1);
  group.rnr(1, 1, 12);  // still no receive is posted
  EXPECT_EQ(group.at_sender(), Texts({"rnr 1 t12"}));
  group.feedback(1, 3, wire::AckKind::kNak, 2);
  EXPECT_EQ(group.at_sender(), Texts({"fatal 1 c2"}));  // no word about what 1 has
}

TEST(SenderGroups, FeedbackThatIsLateTakesNothingBack) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  for (int psn = 0; psn < 4; ++psn) group.data(psn);
  group.ack(1, 3);
  group.ack(1, 0);  // overtaken
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(2, 3);
  EXPECT_EQ(group.at_sender(), Texts({"ack 3"}));
}

TEST(SenderGroups, FeedbackForPacketsNeverSentIsDropped) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2, 3});
  group.set_up();
  group.ack(1, 0);  // before the first packet
  group.data(0);
  group.ack(1, 5'000'000);
  group.nak(2, 9);
  for (int psn = 1; psn < 4; ++psn) group.data(psn);
  group.ack(2, 3);
  group.ack(3, 3);
  EXPECT_EQ(group.at_sender(), Texts());  // host 1 has acknowledged nothing
  EXPECT_EQ(net->count(Counter::kDropFeedbackUnsent), 3u);
  for (const std::size_t r : {1, 2, 3}) group.ack(r, 9);
  EXPECT_EQ(group.at_sender(), Texts());
  group.ack(1, 2);
  EXPECT_EQ(group.at_sender(), Texts({"ack 2"}));
}

TEST(SenderGroups, ReservedSyndromesAndNakCodesReachNoSender) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
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

// More than 2^24 packets: what was asked for and owed long ago looks new again.
TEST(SenderGroups, MayBeOfAnyLength) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  const auto round = [&](std::int64_t psn) {
    group.data(psn);
    group.ack(1, psn);
    group.ack(2, psn);
  };
  for (int psn = 0; psn < 4; ++psn) group.data(psn);
  group.nak(1, 2);
  EXPECT_EQ(group.at_sender(), Texts({"nak 0"}));
  for (int psn = 0; psn < 3; ++psn) group.data(psn);
  group.data_to_acknowledge(3);
  group.ack(1, 3);
  group.ack(2, 3);
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
  EXPECT_EQ(net->inbox(0).size(), 1u);  // a packet that nobody has asked for in this round
}

TEST(SenderGroups, SomebodyElsesFeedbackIsNobodys) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  group.data(0);
  group.ack(3, 0);
  EXPECT_EQ(group.at_sender(), Texts());
  EXPECT_EQ(net->count(Counter::kDropNotMember), 1u);
}

TEST(SenderGroups, CongestionIsToldInTheAliasesNameAndEchoesBecomeNotifications) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  group.data(0);
  group.cnp(2);
  EXPECT_EQ(group.received(0).ip.source, TestNetwork::ip(1));
  EXPECT_EQ(group.at_sender(), Texts({"cnp"}));
  group.feedback(1, 0, wire::AckKind::kAck, 31, true);
  EXPECT_EQ(group.at_sender(), Texts({"cnp"}));
  group.feedback(2, 0, wire::AckKind::kAck, 31, true);
  EXPECT_FALSE(wire::RoceHeaders::parse(*Frame::from_bytes(net->frames(0).at(1)))->bth.becn);
  EXPECT_EQ(group.at_sender(), Texts({"cnp", "ack 0"}));
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
  EXPECT_TRUE(net->sw(2).sender_groups().empty());  // the spine has put host 6's number in
  group.data(0);
  for (const std::size_t r : {3, 4, 6}) EXPECT_EQ(net->inbox(r), Texts({"data 0"}));
  EXPECT_EQ(net->count(Counter::kDataCopies, 0), 0u);
}

TEST(SenderGroups, RacksAreAllThatBranchesWhereSpinesAreOrdinary) {
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

TEST(SenderGroups, OneReceiverFarAwayGetsItsNumberAtItsSwitch) {
  for (const auto how : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    auto net = make_leaf_spine(how);
    TestSender group(*net, 0, {8});
    group.set_up();
    group.data(0);
    EXPECT_EQ(group.received(8).bth.destination_qp, TestNetwork::qpn(8));
    group.ack(8, 0);
    EXPECT_EQ(group.at_sender(), Texts({"ack 0"}));
  }
}

TEST(SenderGroups, WhatMetNoRuleReachesNoQueuePair) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.data(0);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropUnrewritten), 1u);
}

TEST(SenderGroups, ARestartedSwitchAcknowledgesNothingUntilItHasHeardAll) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);  // as it is repeated to a switch that knows nothing
  net->clear();
  for (int psn = 100; psn < 104; ++psn) group.data(psn);
  group.ack(1, 103);
  group.nak(1, 104);
  EXPECT_EQ(group.at_sender(), Texts());
  EXPECT_EQ(net->count(Counter::kSenderFeedbackWithheld), 2u);
  group.ack(2, 102);
  EXPECT_EQ(group.at_sender(), Texts({"ack 102"}));
}

TEST(SenderGroups, ARestartedSwitchBelievesAcknowledgementsOfWhatItMissed) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);
  net->clear();
  group.ack(1, 9);
  EXPECT_EQ(net->count(Counter::kDropFeedbackUnsent), 1u);
  group.data(5);  // again; 6 to 9 were sent before the restart
  for (int answers = 0; answers < 2; ++answers) {
    group.ack(1, 9);
    group.ack(2, 9);
  }
  EXPECT_EQ(group.at_sender(), Texts({"ack 5", "ack 5", "ack 5"}));
  group.nak(1, 9);  // says that it lacks what this switch has not seen
  EXPECT_EQ(group.at_sender(), Texts());
}

// The switch can't install the group with that receiver, and is to be asked for no list without it.
TEST(SenderGroups, ARestartedSwitchNamesAReceiverWhosePortIsDown) {
  auto net = make_star(3, false);
  net->set_port(0, net->port_of(2), false);
  TestSender group(*net, 0, {1, 2});
  group.install(false);
  ASSERT_EQ(group.told_to(0).size(), 1u);
  const auto report = group.told_to(0)[0];
  EXPECT_EQ(report.header.type, wire::MrpType::kReport);
  ASSERT_EQ(report.receiver_count, 1u);
  EXPECT_EQ(report.receivers[0].host, TestNetwork::ip(2));
  EXPECT_EQ(report.receivers[0].flags, wire::kMemberDown);
}

// Its sender waits longer and longer between two repeats: there may not be three of them.
TEST(SenderGroups, ARestartedSwitchTakesWhatItMissedForSentBefore) {
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
  ASSERT_EQ(group.told_to(0).size(), 1u);
  const auto report = group.told_to(0)[0];
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

TEST(SenderGroups, AWriteBeyondARegionReachesNobodyItIsNotFor) {
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
    group.write(1, 9, 0, 64);  // nobody has a region 9
    EXPECT_EQ(net->inbox(6).back(), "data 0");
  }
}

TEST(SenderGroups, ReadsAndAtomicsAreRefusedAndAcknowledgeNothing) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  group.data(0);
  group.request(wire::Opcode::kRcReadRequest, 1);
  EXPECT_EQ(group.at_sender(), Texts({"fatal 0 c1"}));
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(SenderGroups, AReceiverThatIsTakenOutIsWaitedForNoMore) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2, 3});
  group.set_up();
  group.data(0);
  group.ack(2, 0);
  group.ack(3, 0);
  EXPECT_EQ(group.at_sender(), Texts());
  group.addressed_to = group.alias();  // the queue pair goes on speaking to host 1
  group.set_receivers({2, 3});
  group.epoch = 2;
  group.install(false);
  EXPECT_EQ(group.at_sender(), Texts({"ack 0"}));  // it has waited for that
  net->clear();
  group.data(0);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(2), Texts({"data 0"}));
  group.ack(2, 0);
  EXPECT_EQ(group.received(0).ip.source, TestNetwork::ip(1));
  group.epoch = 1;  // late
  group.set_receivers({1, 2, 3});
  group.install(false);
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 1u);
}

TEST(SenderGroups, TheAliasMayBeTakenOutBehindAnySwitch) {
  for (const auto how : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    auto net = make_leaf_spine(how);
    TestSender group(*net, 0, {3, 4, 6});
    group.set_up();
    group.addressed_to = group.alias();
    group.set_receivers({4, 6});
    group.epoch = 2;
    group.install(false);
    net->clear();
    group.data(1);
    EXPECT_EQ(net->inbox(3), Texts());
    EXPECT_EQ(net->inbox(4), Texts({"data 1"}));
    EXPECT_EQ(net->inbox(6), Texts({"data 1"}));
  }
}

TEST(SenderGroups, AnswersComeToTheSendersProcessFromTheRegistrationPort) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3});
  group.install();
  auto told = group.told_to(3);
  ASSERT_EQ(told.size(), 2u);  // by way of either spine, each with its share
  net->clear();
  told[0].header.type = wire::MrpType::kInstalled;
  group.speak(3, told[0], TestNetwork::ip(0));
  ASSERT_EQ(group.told_to(0).size(), 1u);  // ports: the network checks
  EXPECT_EQ(group.told_to(0)[0].share, wire::SenderGroupMessage::kWholeShare / 2);
  // Nobody answers for another.
  group.speak(4, told[0], TestNetwork::ip(0));
  EXPECT_EQ(net->count(Counter::kDropMrpForged, 1), 1u);
}

TEST(SenderGroups, NobodyInstallsInAnothersName) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2});
  group.speak(3, group.message(wire::MrpType::kInstall), TestNetwork::ip(1));
  EXPECT_EQ(net->count(Counter::kDropMrpForged), 1u);
  EXPECT_TRUE(net->sw(0).sender_groups().empty());
}

TEST(SenderGroups, WhatCanNotBeIsRefusedByAWord) {
  auto net = make_star(3, false, [](SwitchConfig& c) { c.max_groups = 1; });
  TestSender group(*net, 0, {1, 2});
  const auto refused = [&](const TestSender& sender) {
    const auto told = sender.told_to(0);
    const auto reason = told.empty() ? wire::MrpReject::kNone
                                     : static_cast<wire::MrpReject>(told.back().header.flags);
    net->clear();
    return reason;
  };
  TestSender to_itself(*net, 0, {1, 0});
  to_itself.install();
  EXPECT_EQ(refused(to_itself), wire::MrpReject::kMalformed);
  group.set_up();
  TestSender second(*net, 0, {1, 2});
  second.virtual_qpn = Qpn(0xC00043);
  second.install();
  EXPECT_EQ(refused(second), wire::MrpReject::kTableFull);
  TestSender other_process(*net, 0, {1, 2});
  other_process.instance = 8;
  other_process.install();
  EXPECT_EQ(refused(other_process), wire::MrpReject::kIdInUse);
}

// Feedback could not be told apart: one's acknowledgements would count for the other.
TEST(SenderGroups, ProcessesOfOneHostShareNoNumberWhoeverTheirAliasesAre) {
  auto net = make_star(4, false);
  TestSender first(*net, 0, {1, 3}), second(*net, 0, {2, 3});
  second.instance = 8;
  second.epoch = 2;
  first.set_up();
  second.install();
  ASSERT_EQ(first.told_to(0).size(), 1u);
  EXPECT_EQ(first.told_to(0)[0].header.type, wire::MrpType::kReject);
  EXPECT_EQ(static_cast<wire::MrpReject>(first.told_to(0)[0].header.flags),
            wire::MrpReject::kIdInUse);
  net->clear();
  first.data(0);
  first.ack(1, 0);
  first.ack(3, 0);
  EXPECT_EQ(first.at_sender(), Texts({"ack 0"}));
}

TEST(SenderGroups, GroupsOfOneProcessShareNoNumberAndDoNotEndEachOther) {
  auto net = make_star(3, false);
  TestSender first(*net, 0, {1, 2}), second(*net, 0, {1, 2});
  second.qpn = Qpn(first.qpn.value() + 1);
  first.set_up();
  second.install();
  ASSERT_EQ(second.told_to(0).size(), 1u);
  EXPECT_EQ(static_cast<wire::MrpReject>(second.told_to(0)[0].header.flags),
            wire::MrpReject::kIdInUse);
  net->clear();
  second.remove();  // as a sender does whose registration was refused
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 1u);
  first.data(0);
  first.ack(1, 0);
  first.ack(2, 0);
  EXPECT_EQ(first.at_sender(), Texts({"ack 0"}));
}

TEST(SenderGroups, SwitchesThatServeNoneSaySo) {
  auto net = make_leaf_spine(net::SenderGroups::kOff);
  TestSender group(*net, 0, {3});
  group.install();
  ASSERT_EQ(group.told_to(0).size(), 1u);
  EXPECT_EQ(static_cast<wire::MrpReject>(group.told_to(0)[0].header.flags),
            wire::MrpReject::kNoSenderGroups);
}

TEST(SenderGroups, WhereThereAreNoneEveryNumberIsAQueuePairs) {
  auto net =
      make_star(2, false, [](SwitchConfig& c) { c.sender_groups = net::SenderGroups::kOff; });
  TestSender unicast(*net, 0, {1});
  unicast.data(0);
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(SenderGroups, ARemovedGroupLeavesNothing) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 4, 6});
  group.set_up();
  group.remove();
  EXPECT_EQ(group.share_that_came(), wire::SenderGroupMessage::kWholeShare);
  for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
  net->clear();
  group.remove();  // a repeat: those behind may have missed the first
  EXPECT_EQ(group.share_that_came(), wire::SenderGroupMessage::kWholeShare);
}

TEST(SenderGroups, AReceiverThatCanNotBeReachedKeepsNoOtherFromBeingToldOfTheEnd) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {1, 3, 4, 6});
  group.set_up();
  net->set_port(0, net->port_of(1), false);
  net->clear();
  group.remove();
  for (const std::size_t r : {3, 4, 6}) {
    ASSERT_FALSE(group.told_to(r).empty()) << r;
    EXPECT_EQ(group.told_to(r).back().header.type, wire::MrpType::kRemove);
  }
  for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
}

// Two receivers at leaf 1 make it branch. When one is taken out, the spine speaks to the other one by
// itself, and leaf 1 hears nothing of the group any more.
TEST(SenderGroups, ARemovedGroupLeavesNothingWhereReceiversWereTakenOut) {
  for (const auto how : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    for (const std::size_t out : {3, 4}) {
      auto net = make_leaf_spine(how);
      TestSender group(*net, 0, {6, 3, 4});
      group.set_up();
      ASSERT_FALSE(net->sw(1).sender_groups().empty());
      group.set_receivers({6, 7 - out});
      for (group.epoch = 2; group.epoch < 4; ++group.epoch) group.install(false);
      net->set_port(1, net->port_of(out), false);
      net->clear();
      --group.epoch;
      group.remove();
      EXPECT_GE(group.share_that_came(), wire::SenderGroupMessage::kWholeShare);
      for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
    }
  }
}

TEST(SenderGroups, ARemoveThatIsNotTheSendersOwnGoesByNoFormerWay) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {6, 3, 4});
  group.set_up();
  group.set_receivers({6, 3});
  group.epoch = 2;
  group.install(false);
  net->advance(2s);  // since the last INSTALL
  net->clear();
  auto m = group.message(wire::MrpType::kRemove);
  m.share = 0;
  group.speak(0, m, group.alias());
  ASSERT_FALSE(group.told_to(3).empty());
  for (const std::size_t r : {3, 4, 6}) {
    for (const auto& told : group.told_to(r)) EXPECT_EQ(told.share, 0u) << r;
  }
}

TEST(SenderGroups, WhoseSenderIsGoneIsForgottenAndReceiversAreTold) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 6});
  group.set_up();
  net->set_port(0, net->port_of(0), false);
  net->advance(10s);
  ASSERT_FALSE(group.told_to(3).empty());
  EXPECT_EQ(group.told_to(3).back().header.type, wire::MrpType::kRemove);
  for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
}

TEST(SenderGroups, TheSenderIsToldWhoLagsAndWhosePortIsDown) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 6});
  group.set_up();
  group.data(0);
  group.ack(3, 0);
  net->clear();
  group.query();
  EXPECT_EQ(group.told_to(0).at(0).receivers[0].flags, wire::kMemberLate);  // was it ever asked?
  for (int repeat = 0; repeat < 3; ++repeat) {
    net->advance(1ms);
    group.data(0);
  }
  net->clear();
  group.query();
  ASSERT_EQ(group.told_to(0).size(), 1u);
  const auto report = group.told_to(0)[0];
  ASSERT_EQ(report.receiver_count, 1u);
  EXPECT_EQ(report.receivers[0].host, TestNetwork::ip(6));
  EXPECT_EQ(report.receivers[0].flags, wire::kMemberOwes);
  net->clear();
  net->set_port(2, net->port_of(6), false);
  EXPECT_EQ(group.told_to(0).size(),
            0u);  // its number was put in at the spines: the leaf knows nothing
  group.query();
  EXPECT_EQ(group.told_to(0).at(0).receivers[0].flags, wire::kMemberOwes);
}

TEST(SenderGroups, AChangedRouteRebuildsWhatItTouches) {
  auto net = make_leaf_spine();
  TestSender touched(*net, 0, {3, 4, 6}), apart(*net, 1, {2});
  apart.virtual_qpn = Qpn(0xC00077);
  touched.set_up();
  apart.set_up();
  net->set_port(0, net->port_between(0, 3), false);
  EXPECT_EQ(net->count(Counter::kSenderRebuilt, 0), 1u);  // of two groups
  EXPECT_EQ(net->count(Counter::kSenderInstall, 4), 2u);  // told anew, the one spine that is left
  net->clear();
  touched.data(0);
  for (const std::size_t r : {3, 4, 6}) EXPECT_EQ(net->inbox(r), Texts({"data 0"}));
  apart.data(0);
  EXPECT_EQ(net->inbox(2), Texts({"data 0"}));
}

// The sender's switch does not learn that spine 3 has lost leaf 1, and repeats INSTALLs by it. Host 3
// is reached by spine 4.
TEST(SenderGroups, WithoutHellosADeadWayTakesOutNobody) {
  auto net = make_leaf_spine(net::SenderGroups::kEverywhere,
                             [](SwitchConfig& c) { c.hello = Duration(0); });
  TestSender group(*net, 0, {3, 6});
  group.set_up();
  net->set_port(3, net->port_between(3, 1), false);
  net->set_port(1, net->port_between(1, 3), false);
  net->clear();
  group.install(false);
  EXPECT_EQ(net->count(Counter::kSenderUnreachable, 3), 1u);
  EXPECT_TRUE(group.told_to(0).empty());
  net->clear();
  group.attempt = 1;
  group.install();  // in a set-up it must be known
  ASSERT_EQ(group.told_to(0).size(), 1u);
  EXPECT_EQ(group.told_to(0)[0].header.type, wire::MrpType::kReject);
}

// Spine 3 has heard nothing since its trunk to the sender's leaf went dark, and tells those behind it.
TEST(SenderGroups, WhereTheSenderComesByAnotherWayAForgottenOneEndsNothing) {
  for (const bool alias_leaves : {false, true}) {
    auto net =
        make_leaf_spine(net::SenderGroups::kEverywhere, [](SwitchConfig& c) { c.age = 10s; });
    TestSender group(*net, 0, {3, 4, 6});
    group.set_up();
    net->set_port(0, net->port_between(0, 3), false);
    net->set_port(3, net->port_between(3, 0), false);
    if (alias_leaves) {
      group.set_receivers({4, 6});
      group.epoch = 2;
    }
    for (int second = 0; second < 12 && !net->sw(3).sender_groups().empty(); ++second) {
      group.install(false);
      net->advance(1s);
    }
    ASSERT_TRUE(net->sw(3).sender_groups().empty());
    net->clear();
    group.data(0);
    for (const std::size_t r : {4, 6}) EXPECT_EQ(net->inbox(r), Texts({"data 0"}));
  }
}

TEST(SenderGroups, RegistrationIsSignedWhereTheFabricHasAKey) {
  const auto key = std::make_shared<const wire::MrpKey>(
      *wire::MrpKey::parse("00112233445566778899aabbccddeeff"));
  auto net = make_pair_of_switches(false, [&](SwitchConfig& c) { c.mrp_key = key; });
  TestSender group(*net, 0, {2, 3});
  group.set_up();
  group.data(0);
  EXPECT_EQ(net->inbox(3), Texts({"data 0"}));
}

}  // namespace
}  // namespace cepheus::fabric
