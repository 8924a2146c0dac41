#include "switch-emulator/engine/eviction.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using wire::MrpType;
using namespace std::chrono_literals;

void evict_host(TestNetwork& net, std::size_t host, std::size_t leader = 0) {
  net.control(leader, MrpType::kEvict, 1, {net.member(host)});
}

// The members of the last REPORT that reached `host`; their QPNs count feedback packets.
std::vector<wire::MrpMember> reported(TestNetwork& net, std::size_t host) {
  std::vector<wire::MrpMember> members;
  for (const auto& bytes : net.frames(host)) {
    const auto frame = Frame::from_bytes(bytes);
    const auto message = wire::MrpMessage::parse(frame->payload());
    if (!message || message->header.type != MrpType::kReport) continue;
    members.assign(message->list().begin(), message->list().end());
  }
  return members;
}

// The members that switches report when the leader, host 0, sends QUERY: the answering ones, and
// the others.
std::vector<wire::MrpMember> named(TestNetwork& net, bool late) {
  net.clear();
  net.control(0, MrpType::kQuery, 1);
  auto list = reported(net, 0);
  std::erase_if(list, [&](const auto& m) { return (m.flags == wire::kMemberLate) != late; });
  return list;
}
std::vector<wire::MrpMember> lagging(TestNetwork& net) { return named(net, false); }
std::vector<wire::MrpMember> late(TestNetwork& net) { return named(net, true); }

TEST(Eviction, LetsTheSourceGoOnAtOnce) {
  auto net = make_star(4);
  net->message(1, 0, 4);
  net->ack({0, 2}, 4);
  net->ack(3, 1);
  net->clear();
  evict_host(*net, 3);
  EXPECT_EQ(net->inbox(1), Texts({"ack 4"}));
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.4"}));
  EXPECT_EQ(net->inbox(3), Texts({"unregister e1"})) << "it may only have been asleep";
  EXPECT_EQ(net->count(Counter::kPathsEvicted), 1u);
  EXPECT_EQ(net->view().paths.size(), 3u);
}

TEST(Eviction, SendsTheNakThatWaitedForTheMember) {
  auto net = make_star_amid(4, 4);
  net->ack(1, 4);
  net->nak(2, 3);
  EXPECT_EQ(net->inbox(0), Texts());
  evict_host(*net, 3);
  EXPECT_EQ(net->inbox(0), Texts({"nak 3", "confirm e1 10.0.0.4"}));
}

TEST(Eviction, OpensTheGateThatWaitedForTheMember) {
  auto net = make_star_amid(4, 1);
  net->ack({1, 2}, 1);
  net->clear();
  net->data(1, 0);
  EXPECT_EQ(net->inbox(2), Texts());
  evict_host(*net, 3);
  EXPECT_EQ(net->inbox(2), Texts({"data 2"}));
  EXPECT_EQ(net->payloads.in_use(), 0u);
}

TEST(Eviction, ReleasesTheMembersFramesAtTheGate) {
  auto net = make_star_amid(3, 1);
  net->ack(1, 1);
  net->clear();
  net->data(1, 0);
  EXPECT_EQ(net->payloads.in_use(), 1u);
  evict_host(*net, 1);
  EXPECT_EQ(net->payloads.in_use(), 0u);
  net->ack(2, 1);
  EXPECT_EQ(net->inbox(2), Texts());
}

TEST(Eviction, OfAllMembersOfASwitchLeavesItAcknowledgingForThem) {
  auto net = make_pair_of_switches();
  net->message(0, 0, 1);
  net->ack({1, 2}, 1);
  net->clear();
  net->control(0, MrpType::kEvict, 1, {net->member(2), net->member(3)});
  EXPECT_EQ(net->inbox(0), Texts({"ack 1", "confirm e1 10.0.0.3 10.0.0.4"}));
  net->message(0, 2, 3);
  net->ack(1, 3);
  net->clear();
  net->data(1, 0);
  net->ack(0, 0);
  EXPECT_EQ(net->inbox(1), Texts({"ack 0"}));
}

// NICs that complete messages by MSN need the number of ends up to each acknowledged packet, and
// the switch has not seen the end that was lost before it.
TEST(Eviction, OfTheOnlyReceiverLeavesASwitchThatAcknowledgesInOrder) {
  auto net = make_star(2);
  evict_host(*net, 1);
  net->clear();
  net->data(0, 0);
  net->data(0, 2);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "ack 0"}));
  net->clear();
  net->data(0, 1);
  net->data(0, 2);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1", "ack 2"}));
}

TEST(Eviction, IsDoneOnceForRepeatedRequests) {
  auto net = make_star(3);
  evict_host(*net, 2);
  net->clear();
  evict_host(*net, 2);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.3"}));
  EXPECT_EQ(net->count(Counter::kPathsEvicted), 1u);
}

TEST(Eviction, ObeysTheLeaderOnly) {
  auto net = make_star(3);
  net->control(1, MrpType::kEvict, 1, {net->member(2)});
  net->control(0, MrpType::kEvict, 1, {net->member(2)}, 99);
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 2u);
  net->control(0, MrpType::kEvict, 7, {net->member(2)});
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 1u);
  evict_host(*net, 0);
  EXPECT_EQ(net->count(Counter::kPathsEvicted), 0u) << "a leader that leaves unregisters";
  EXPECT_EQ(net->view().paths.size(), 3u);
}

TEST(Eviction, FreesTheTableInTheEnd) {
  auto net = make_pair_of_switches();
  evict_host(*net, 3);
  net->control(0, MrpType::kUnregister, 1);
  EXPECT_EQ(net->sw(0).group_count() + net->sw(1).group_count(), 0u);
}

TEST(Query, ReportsLaggingHostsWithTheirFeedbackCounts) {
  auto net = make_pair_of_switches();
  net->message(1, 0, 4);
  net->ack(0, 4);
  net->ack(2, 1);
  net->ack({2, 3}, 2);
  for (int i = 0; i < 2; ++i) {
    net->advance(1ms);
    net->data(1, 3, false);
  }
  const auto list = lagging(*net);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].host, TestNetwork::ip(2));
  EXPECT_EQ(list[0].qpn.value(), 2u);
  EXPECT_EQ(list[0].flags, wire::kMemberOwes);
  EXPECT_EQ(list[1].host, TestNetwork::ip(3));
  EXPECT_EQ(list[1].qpn.value(), 1u);
}

// The source repeats the packets of the slowest: the others have nothing to answer.
TEST(Query, ReportsNoHostWithoutUnansweredRepeats) {
  auto net = make_star_amid(4, 4);
  net->ack(1, 1);
  net->ack(2, 2);
  net->ack(3, 4);
  net->data(0, 2, false);
  EXPECT_EQ(lagging(*net), std::vector<wire::MrpMember>());
  net->advance(1ms);
  net->data(0, 2, false);
  ASSERT_EQ(lagging(*net).size(), 1u);
  EXPECT_EQ(lagging(*net)[0].host, TestNetwork::ip(1));
  net->advance(4ms);  // the source waits for another receiver
  EXPECT_EQ(lagging(*net), std::vector<wire::MrpMember>());
  net->data(0, 2, false);
  EXPECT_EQ(lagging(*net).size(), 1u);
  net->nak(1, 2);  // it answers: it is alive
  EXPECT_EQ(lagging(*net), std::vector<wire::MrpMember>());
}

// No receive is posted, because the program computes: it lags, but answers.
TEST(Query, ReportsLateHostsAndCountsTheirAnswers) {
  auto net = make_star(4);
  net->message(1, 0, 1);
  net->ack(2, 1);
  for (const std::uint32_t answers : {1u, 2u, 3u}) {
    net->rnr(0, 1);  // the leader's own host, too
    net->rnr(3, 1);
    net->advance(1ms);
    net->data(1, 1);
    const std::vector<wire::MrpMember> expected{
        {TestNetwork::ip(0), Qpn(answers), wire::kMemberLate},
        {TestNetwork::ip(3), Qpn(answers), wire::kMemberLate}};
    EXPECT_EQ(late(*net), expected);
  }
  for (int i = 0; i < 2; ++i) {
    net->advance(1ms);
    net->data(1, 1);
  }
  EXPECT_EQ(late(*net), std::vector<wire::MrpMember>()) << "it does not answer any more";
  ASSERT_GE(lagging(*net).size(), 1u);
  net->ack({3, 0}, 1);
  EXPECT_EQ(late(*net), std::vector<wire::MrpMember>());
}

// A silent source blocks all, whichever member lags: it should send again. Its packets are counted
// where all of them pass.
TEST(Query, ReportsTheSourceAndCountsItsPacketsAtItsLeaf) {
  auto net = make_pair_of_switches();
  net->message(2, 0, 4);
  net->ack({0, 1}, 4);
  net->ack(3, 2);
  for (const std::uint32_t packets : {5u, 6u}) {
    const auto list = lagging(*net);
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].host, TestNetwork::ip(2));
    EXPECT_EQ(list[0].qpn.value(), packets);
    EXPECT_EQ(list[0].flags, wire::kMemberSource | wire::kMemberOwes);
    net->data(2, 3, false);
  }
  net->ack(3, 4);
  EXPECT_EQ(lagging(*net), std::vector<wire::MrpMember>());
}

TEST(Query, IsNotAnsweredWhenNoHostLags) {
  auto net = make_star_amid(3, 1);
  net->ack({1, 2}, 1);
  net->clear();
  net->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kMrpQuery), 1u);
}

// A leader that waits for data gets no other message from its switch.
void query_presence(TestNetwork& net) {
  constexpr std::size_t kFlagsLow = wire::kBthOffset + 3;
  auto bytes = TestNetwork::control_bytes(0, MrpType::kQuery, 1, {});
  bytes[kFlagsLow] = wire::MrpHeader::kPresence;
  std::fill_n(bytes.begin() + wire::kUdpOffset + 6, 2, std::uint8_t{0});  // no checksum
  net.inject_bytes(0, bytes);
}

TEST(Query, ForPresenceIsAnsweredEvenIfNoHostLags) {
  auto net = make_star(3);
  net->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net->count(Counter::kMrpReport), 0u);
  query_presence(*net);
  EXPECT_EQ(net->count(Counter::kMrpReport), 1u);
  EXPECT_TRUE(reported(*net, 0).empty());
}

TEST(Query, ForPresenceIsAnsweredByTheLeadersOwnSwitchOnly) {
  auto net = make_pair_of_switches();
  query_presence(*net);
  EXPECT_EQ(net->count(Counter::kMrpReport, 0), 1u);
  EXPECT_EQ(net->count(Counter::kMrpReport, 1), 0u);
}

TEST(Query, ForAGroupThatTheSwitchHasForgottenIsRefusedButNotForOneThatHasEnded) {
  auto net = make_star(3);
  net->control(0, MrpType::kUnregister, 1);
  net->clear();
  net->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(net->config(0).rest + 1ms);
  net->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 members are missing in the table"}));
}

TEST(Query, ForAGroupThatTheSwitchFreedWithoutItsLeaderIsRefused) {
  auto net = make_star(3);
  net->set_port(0, net->port_of(0), false);
  net->advance(net->config(0).orphan_age * 2 + 2ms);
  ASSERT_EQ(net->sw(0).tombstone_count(), 1u);
  net->set_port(0, net->port_of(0), true);
  net->clear();
  net->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 members are missing in the table"}));
}

TEST(PortDown, IsReportedToTheLeaderAtOnce) {
  auto net = make_star(4);
  net->message(1, 0, 1);
  net->ack(2, 1);
  net->clear();
  net->set_port(0, net->port_of(2), false);
  ASSERT_EQ(reported(*net, 0).size(), 1u);
  EXPECT_EQ(reported(*net, 0)[0].flags, wire::kMemberDown);
  EXPECT_EQ(net->inbox(0), Texts({"report e1 10.0.0.3"}));
  net->clear();
  net->set_port(0, net->port_of(1), false);
  ASSERT_EQ(reported(*net, 0).size(), 1u);
  EXPECT_EQ(reported(*net, 0)[0].flags,
            wire::kMemberDown | wire::kMemberSource | wire::kMemberOwes);
}

// The REPORT may be lost, and the leader may ask when a new program runs there.
TEST(PortDown, IsRememberedUntilTheMemberAnswers) {
  auto net = make_star_amid(4, 1);
  net->set_port(0, net->port_of(2), false);
  net->ack(2, 0);  // was under way
  net->set_port(0, net->port_of(2), true);
  ASSERT_EQ(lagging(*net).size(), 1u);
  EXPECT_EQ(lagging(*net)[0].host, TestNetwork::ip(2));
  EXPECT_EQ(lagging(*net)[0].flags, wire::kMemberDown);
  net->ack(2, 1);  // only its link was down
  EXPECT_EQ(lagging(*net), std::vector<wire::MrpMember>());
}

TEST(PortDown, OfTheLeaderCompletesMessagesInFlightAndThenEndsTheGroup) {
  auto net = make_star(4);
  net->message(1, 0, 1);
  net->ack({2, 3}, 1);
  net->clear();
  net->set_port(0, net->port_of(0), false);
  EXPECT_EQ(net->inbox(1), Texts());
  net->advance(net->config(0).orphan_age + 1ms);
  EXPECT_EQ(net->inbox(1), Texts({"ack 1"}));
  net->advance(net->config(0).orphan_age + 1ms);
  EXPECT_EQ(net->inbox(2), Texts({"unregister e1"}));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

// A group without evictions: no switch acknowledges for the leader, because the leader may lack the
// messages in flight.
TEST(PortDown, OfTheLeaderEndsAGroupThatSurvivesNoLoss) {
  auto net = make_star(4);
  net->register_group(0, 2, {}, wire::MrpHeader::kLossEnds);
  for (std::size_t host = 1; host < 4; ++host) net->confirm(host, MrpType::kRegister);
  net->control(0, MrpType::kActivate, 2);
  net->message(1, 0, 1);
  net->ack({2, 3}, 1);
  net->clear();
  net->set_port(0, net->port_of(0), false);
  net->advance(net->config(0).orphan_age + 1ms);
  EXPECT_EQ(net->inbox(1), Texts({"unregister e2"}));
  EXPECT_EQ(net->inbox(2), Texts({"unregister e2"}));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
  EXPECT_EQ(net->count(Counter::kPathsEvicted), 0u);
}

TEST(PortDown, OfALeaderThatSendsEndsTheGroup) {
  auto net = make_star(3);
  net->data(0, 0, false);
  net->clear();
  net->set_port(0, net->port_of(0), false);
  net->advance(net->config(0).orphan_age + 1ms);
  EXPECT_EQ(net->inbox(2), Texts({"unregister e1"}));
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

TEST(PortDown, AProgramThatComesToTheLeadersPortIsNotTheLeader) {
  auto net = make_star(3);
  net->set_port(0, net->port_of(0), false);
  net->set_port(0, net->port_of(0), true);
  net->advance(net->config(0).orphan_age * 2 + 2ms);
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

TEST(PortDown, ForAMomentLeavesALeaderThatSendsPacketsInItsGroup) {
  for (const bool is_source : {false, true}) {
    auto net = make_star(3);
    if (!is_source) net->data(1, 0);
    net->set_port(0, net->port_of(0), false);
    net->advance(200ms);
    net->set_port(0, net->port_of(0), true);
    is_source ? net->data(0, 0) : net->ack(0, 0);
    net->advance(net->config(0).orphan_age * 2 + 2ms);
    EXPECT_EQ(net->sw(0).group_count(), 1u) << is_source;
    net->set_port(0, net->port_of(0), false);  // it counts anew
    net->advance(net->config(0).orphan_age * 2 + 2ms);
    EXPECT_EQ(net->sw(0).group_count(), 0u) << is_source;
  }
}

// All other members are behind one trunk.
TEST(PortDown, OfTheLeaderAsItsSwitchsOnlyMemberCompletesMessagesInFlight) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kEvict, 1, {net->member(1)});
  net->message(2, 0, 1);
  net->ack(3, 1);
  net->clear();
  net->set_port(0, net->port_of(0), false);
  net->advance(net->config(0).orphan_age + 1ms);
  EXPECT_EQ(net->inbox(2), Texts({"ack 1"}));
  net->advance(net->config(0).orphan_age + 1ms);
  EXPECT_EQ(net->inbox(2), Texts({"unregister e1"}));
}

TEST(PortDown, OfALeaderThatIsLeftAloneEndsTheGroup) {
  auto net = make_star(2);
  net->message(1, 0, 0);
  evict_host(*net, 1);
  net->set_port(0, net->port_of(0), false);
  net->advance(net->config(0).orphan_age + 1ms);
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

// No leader repeats the switch's UNREGISTER.
TEST(PortDown, OfTheLeaderEndsTheGroupBehindATrunkThatLosesOneMessage) {
  auto net = make_pair_of_switches();
  int lost = 0;
  net->lose = [&](std::size_t from, std::size_t, const std::string& t) {
    return from == 0 && t == "unregister e1" && lost++ == 0;
  };
  net->set_port(0, net->port_of(0), false);
  net->advance(net->config(0).orphan_age * 2 + 2ms);
  EXPECT_EQ(net->sw(0).group_count(), 0u);
  EXPECT_EQ(net->sw(1).group_count(), 1u);
  net->advance(net->config(0).rest);
  EXPECT_EQ(lost, 4) << "nobody confirms";
  EXPECT_EQ(net->sw(1).group_count(), 0u);
  EXPECT_THAT(net->inbox(3), testing::Contains("unregister e1"));
}

TEST(PortDown, ProgramsThatComeAndGoAtTheLeadersPortKeepNoGroup) {
  auto net = make_star(3);
  const Duration half = net->config(0).orphan_age * 3 / 8;
  for (int restart = 0; restart < 5; ++restart) {
    net->set_port(0, net->port_of(0), false);
    net->advance(half);
    net->set_port(0, net->port_of(0), true);
    net->advance(half);
  }
  EXPECT_EQ(net->sw(0).group_count(), 0u);
}

}  // namespace
}  // namespace cepheus::fabric
