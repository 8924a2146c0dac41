// Sender groups on connected switches: receivers that are installed, refused and evicted
// (docs/protocol.md, "Sender groups").
#include "switch-emulator/engine/mcrdma/installer.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

TEST(SenderGroups, AnEvictedReceiverIsNoLongerAwaited) {
  auto [net, group] = set_up_star(4, {1, 2, 3});
  group.data(0);
  group.ack({2, 3}, 0);
  EXPECT_EQ(group.at_sender(), Texts());
  group.addressed_to = group.alias();  // the queue pair stays connected to host 1
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

// A new epoch without the receiver that the data is addressed to.
void evict_alias(TestSender& group, std::vector<std::size_t> others) {
  group.addressed_to = group.alias();
  group.set_receivers(std::move(others));
  group.epoch = 2;
  group.install(false);
}

TEST(SenderGroups, TheAliasMayBeEvictedBehindAnySwitch) {
  for (const auto how : {net::SenderGroups::kEverywhere, net::SenderGroups::kRacks}) {
    auto net = make_leaf_spine(how);
    TestSender group(*net, 0, {3, 4, 6});
    group.set_up();
    evict_alias(group, {4, 6});
    net->clear();
    group.data(1);
    EXPECT_EQ(net->inbox(3), Texts());
    EXPECT_EQ(net->inbox(4), Texts({"data 1"}));
    EXPECT_EQ(net->inbox(6), Texts({"data 1"}));
  }
}

// Behind the sender's switch the group's record gets another key with the alias gone.
TEST(SenderGroups, TheAliasMayBeEvictedFromAFullTable) {
  for (std::uint32_t SwitchConfig::*limit :
       {&SwitchConfig::max_groups, &SwitchConfig::max_groups_per_host}) {
    auto net =
        make_leaf_spine(net::SenderGroups::kEverywhere, [&](SwitchConfig& c) { c.*limit = 1; });
    TestSender group(*net, 0, {3, 4, 6});
    group.set_up();
    evict_alias(group, {4, 6});
    EXPECT_TRUE(group.messages_to(0).empty()) << "no REJECT";
    net->clear();
    group.data(1);
    EXPECT_EQ(net->inbox(4), Texts({"data 1"}));
    EXPECT_EQ(net->inbox(6), Texts({"data 1"}));
  }
}

TEST(SenderGroups, AnswersComeToTheSendersProcessFromTheRegistrationPort) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3});
  group.install();
  auto received = group.messages_to(3);
  ASSERT_EQ(received.size(), 2u);  // over both spines, each with its share
  net->clear();
  received[0].header.type = wire::MrpType::kInstalled;
  group.send_message(3, received[0], TestNetwork::ip(0));
  ASSERT_EQ(group.messages_to(0).size(), 1u);  // ports: the network checks them
  EXPECT_EQ(group.messages_to(0)[0].share, wire::SenderGroupMessage::kWholeShare / 2);
  // No receiver answers for another.
  group.send_message(4, received[0], TestNetwork::ip(0));
  EXPECT_EQ(net->count(Counter::kDropMrpForged, 1), 1u);
}

TEST(SenderGroups, NoHostInstallsInAnothersName) {
  auto net = make_star(4, false);
  TestSender group(*net, 0, {1, 2});
  group.send_message(3, group.message(wire::MrpType::kInstall), TestNetwork::ip(1));
  EXPECT_EQ(net->count(Counter::kDropMrpForged), 1u);
  EXPECT_TRUE(net->sw(0).sender_groups().empty());
}

// Its header has another version, or its SENDER record another length.
TEST(SenderGroups, AnInstallOfAnotherVersionIsCountedAsMalformed) {
  constexpr std::size_t kPayload = wire::kBthOffset;
  for (const std::size_t at : {std::size_t{0}, wire::MrpHeader::kSize + 1}) {
    auto net = make_star(4, false);
    TestSender group(*net, 0, {1, 2});
    auto bytes = group.datagram_of(0, group.message(wire::MrpType::kInstall), TestNetwork::ip(1));
    bytes[kPayload + at] = 7;
    bytes[kPayload - 2] = bytes[kPayload - 1] = 0;  // no UDP checksum
    net->inject(0, *Frame::from_bytes(bytes));
    EXPECT_EQ(net->count(Counter::kDropMalformed), 1u) << "byte " << at;
    EXPECT_EQ(net->count(Counter::kDropMrpForged), 0u) << "byte " << at;
  }
}

TEST(SenderGroups, InvalidInstallsAreRefusedWithAReason) {
  auto net = make_star(3, false, [](SwitchConfig& c) { c.max_groups = 1; });
  TestSender group(*net, 0, {1, 2});
  const auto refused = [&](const TestSender& sender) {
    const auto received = sender.messages_to(0);
    const auto reason = received.empty()
                            ? wire::MrpReject::kNone
                            : static_cast<wire::MrpReject>(received.back().header.flags);
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

TEST(SenderGroups, RefusedInstallsAreLimitedInRateToo) {
  auto net = make_star(2, false, [](SwitchConfig& c) {
    c.register_rate = 4;  // two at once
    c.max_groups = 0;
  });
  TestSender group(*net, 0, {1});
  for (int n = 0; n < 10; ++n) group.install();
  EXPECT_EQ(net->count(Counter::kMrpReject), 2u);
  EXPECT_EQ(net->count(Counter::kDropMrpRate), 8u);
}

// Each goes by all equal-cost ways: 1024 copies in a fat-tree of 16 ports.
TEST(SenderGroups, RepeatedInstallsAndRemovesAreLimitedInRate) {
  using wire::MrpType;
  constexpr std::uint16_t kMeasures = wire::SenderGroupMessage::kMeasures;
  for (const auto& [type, flags] :
       {std::pair{MrpType::kInstall, kMeasures}, std::pair{MrpType::kInstall, std::uint16_t{0}},
        std::pair{MrpType::kRemove, std::uint16_t{0}}}) {
    auto net = make_leaf_spine(net::SenderGroups::kEverywhere, [](SwitchConfig& c) {
      c.register_rate = 2;  // four for its one group: two at once
      c.max_groups_per_host = 1;
    });
    TestSender group(*net, 0, {3, 4});
    group.set_up();
    auto m = group.message(type);
    m.header.flags = flags;
    for (int n = 0; n < 10; ++n) group.send_message(0, m, group.alias());
    const unsigned lawful = type == MrpType::kRemove ? 1 : 0;  // it ends a record
    EXPECT_EQ(net->count(Counter::kDropMrpRate), 8u - lawful);
    EXPECT_EQ(group.messages_to(3).size(), 2u * (2 + lawful)) << "by two spines";
    net->advance(1s);
    net->clear();
    group.send_message(0, m, group.alias());
    EXPECT_EQ(group.messages_to(3).size(), 2u);
    EXPECT_EQ(net->count(Counter::kDropMrpRate, 1), 0u) << "its own switch has admitted them";
  }
}

// Feedback would be ambiguous: acknowledgements of one would count for the other.
TEST(SenderGroups, ProcessesOfOneHostShareNoNumberWithAnyAliases) {
  auto net = make_star(4, false);
  TestSender first(*net, 0, {1, 3}), second(*net, 0, {2, 3});
  second.instance = 8;
  second.epoch = 2;
  first.set_up();
  second.install();
  ASSERT_EQ(first.messages_to(0).size(), 1u);
  EXPECT_EQ(first.messages_to(0)[0].header.type, wire::MrpType::kReject);
  EXPECT_EQ(static_cast<wire::MrpReject>(first.messages_to(0)[0].header.flags),
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
  ASSERT_EQ(second.messages_to(0).size(), 1u);
  EXPECT_EQ(static_cast<wire::MrpReject>(second.messages_to(0)[0].header.flags),
            wire::MrpReject::kIdInUse);
  EXPECT_EQ(second.messages_to(0)[0].sender_qpn, second.qpn) << "the first group is not meant";
  net->clear();
  second.remove();  // as a sender does after a refused registration
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 1u);
  first.data(0);
  first.ack(1, 0);
  first.ack(2, 0);
  EXPECT_EQ(first.at_sender(), Texts({"ack 0"}));
}

TEST(SenderGroups, SwitchesWithoutSenderGroupsRefuseThem) {
  auto net = make_leaf_spine(net::SenderGroups::kOff);
  TestSender group(*net, 0, {3});
  group.install();
  ASSERT_EQ(group.messages_to(0).size(), 1u);
  EXPECT_EQ(static_cast<wire::MrpReject>(group.messages_to(0)[0].header.flags),
            wire::MrpReject::kNoSenderGroups);
}

TEST(SenderGroups, WithSenderGroupsOffEveryNumberIsAQueuePairs) {
  auto net =
      make_star(2, false, [](SwitchConfig& c) { c.sender_groups = net::SenderGroups::kOff; });
  TestSender unicast(*net, 0, {1});
  unicast.data(0);
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
}

TEST(SenderGroups, AGroupWithoutASenderIsRemovedAtItsReceivers) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 6});
  group.set_up();
  net->set_port(0, net->port_of(0), false);
  net->advance(10s);
  ASSERT_FALSE(group.messages_to(3).empty());
  EXPECT_EQ(group.messages_to(3).back().header.type, wire::MrpType::kRemove);
  for (std::size_t s = 0; s < 5; ++s) EXPECT_TRUE(net->sw(s).sender_groups().empty()) << s;
}

TEST(SenderGroups, AProgramThatComesToTheSendersPortKeepsNoGroupOfTheLastOne) {
  auto [net, group] = set_up_star(3, {1, 2});
  net->set_port(0, net->port_of(0), false);
  net->advance(1s);
  net->set_port(0, net->port_of(0), true);
  net->advance(net->config(0).orphan_age - 1ms);
  EXPECT_EQ(net->sw(0).sender_groups().size(), 1u);
  net->advance(2ms);
  EXPECT_TRUE(net->sw(0).sender_groups().empty());
}

TEST(SenderGroups, ProgramsThatComeAndGoAtTheSendersPortKeepNoGroupOfTheLastOne) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  const Duration half = net->config(0).orphan_age * 3 / 8;
  for (int restart = 0; restart < 5; ++restart) {
    net->set_port(0, net->port_of(0), false);
    net->advance(half);
    net->set_port(0, net->port_of(0), true);
    net->advance(half);
  }
  EXPECT_TRUE(net->sw(0).sender_groups().empty());
}

TEST(SenderGroups, ASenderThatComesBackKeepsItsGroups) {
  auto [net, group] = set_up_star(3, {1, 2});
  net->set_port(0, net->port_of(0), false);
  net->advance(1s);
  net->set_port(0, net->port_of(0), true);
  net->advance(1s);
  group.install(false);
  net->advance(10s);
  EXPECT_EQ(net->sw(0).sender_groups().size(), 1u);
}

TEST(SenderGroups, ASenderThatComesBackKeepsAGroupWithAnUnreachableReceiver) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {1, 6});
  group.set_up();
  for (const std::size_t spine : {3, 4}) net->set_port(0, net->port_between(0, spine), false);
  net->set_port(0, net->port_of(0), false);
  net->advance(1s);
  net->set_port(0, net->port_of(0), true);
  net->advance(1s);
  group.install(false);
  net->advance(net->config(0).orphan_age);
  EXPECT_EQ(net->sw(0).sender_groups().size(), 1u);
}

TEST(SenderGroups, TheSenderGetsReportsOfLaggingReceiversAndDownPorts) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {3, 6});
  group.set_up();
  group.data(0);
  group.ack(3, 0);
  net->clear();
  group.query();
  // Whether it ever got a request.
  EXPECT_EQ(group.messages_to(0).at(0).receivers[0].flags, wire::kMemberLate);
  for (int repeat = 0; repeat < 3; ++repeat) {
    net->advance(1ms);
    group.data(0);
  }
  net->clear();
  group.query();
  ASSERT_EQ(group.messages_to(0).size(), 1u);
  const auto report = group.messages_to(0)[0];
  ASSERT_EQ(report.receiver_count, 1u);
  EXPECT_EQ(report.receivers[0].host, TestNetwork::ip(6));
  EXPECT_EQ(report.receivers[0].flags, wire::kMemberOwes);
  net->clear();
  net->set_port(2, net->port_of(6), false);
  EXPECT_EQ(group.messages_to(0).size(),
            0u);  // the spines have rewritten its number: the leaf knows nothing
  group.query();
  EXPECT_EQ(group.messages_to(0).at(0).receivers[0].flags, wire::kMemberOwes);
}

// Packets behind the one that it lacks can't be answered.
TEST(SenderGroups, AReceiverIsSilentOnlyAboutThePacketThatItNeedsNext) {
  auto net = make_star(3, false);
  TestSender group(*net, 0, {1, 2});
  group.set_up();
  for (int psn = 0; psn < 4; ++psn) group.data(psn);
  group.ack(1, 3);
  group.ack(2, 0);
  const auto flags_after_repeats_of = [&](std::int64_t psn) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      net->advance(1ms);
      group.data(psn);
    }
    net->clear();
    group.query();
    return group.messages_to(0).at(0).receivers[0].flags;
  };
  EXPECT_EQ(flags_after_repeats_of(2), wire::kMemberLate);
  EXPECT_EQ(flags_after_repeats_of(1), wire::kMemberOwes);
}

// A way may come back; the sender evicts a receiver at once if its port is down.
TEST(SenderGroups, AReceiverWithoutAWayIsReportedForItsSilenceAlone) {
  auto net = make_leaf_spine();
  TestSender group(*net, 0, {1, 6});
  group.set_up();
  group.data(0);
  group.ack({1, 6}, 0);
  for (const std::size_t spine : {3, 4}) net->set_port(0, net->port_between(0, spine), false);
  net->clear();
  group.query();
  EXPECT_EQ(group.messages_to(0).at(0).receiver_count, 0u);
  for (int repeat = 0; repeat < 4; ++repeat) {
    net->advance(1ms);
    group.data(1);
  }
  net->set_port(0, net->port_of(1), false);
  net->clear();
  group.query();
  const auto report = group.messages_to(0).at(0);
  ASSERT_EQ(report.receiver_count, 2u);
  EXPECT_EQ(report.receivers[0].flags, wire::kMemberDown | wire::kMemberOwes);
  EXPECT_EQ(report.receivers[1].flags, wire::kMemberOwes);
}

TEST(SenderGroups, AreForgottenAfterAnAgeThatWasMadeShorter) {
  auto [net, group] = set_up_star(3, {1, 2});
  SwitchConfig next = net->config(0);
  next.age = 1s;
  net->sw(0).take_settings(next);
  net->advance(2s);
  EXPECT_TRUE(net->sw(0).sender_groups().empty());
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
