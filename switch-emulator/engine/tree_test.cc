// Trees of switches: tagged turns, merging at every hop, choice among equal-cost ports.
#include <gtest/gtest.h>

#include <set>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using wire::Opcode;

TEST(Tree, CarriesDataOnceOverEachLink) {
  auto net = make_pair_of_switches();
  int over_trunk = 0;
  net->on_trunk = [&](std::size_t, std::size_t, const wire::RoceHeaders&) { ++over_trunk; };
  net->data(0, 0);
  EXPECT_EQ(over_trunk, 1);
  for (const std::size_t h : {1, 2, 3}) EXPECT_EQ(net->inbox(h), Texts({"data 0"}));
}

TEST(Tree, CarriesDataAsFarAsItsTimeToLiveAllows) {
  auto net = make_pair_of_switches();
  for (const std::uint8_t ttl : {1, 2}) {
    auto h = net->headers_from(0, Opcode::kRcSendOnly, ttl - 1);
    h.ip.ttl = ttl;
    net->inject(0, net->make_frame(0, h, 8));
  }
  EXPECT_EQ(net->inbox(1), Texts({"data 0", "data 1"}));
  EXPECT_EQ(net->inbox(2), Texts({"data 1"}));
  EXPECT_EQ(net->count(Counter::kDropCopyTtl), 1u);
}

TEST(Tree, NamesTheTurnBetweenSwitches) {
  auto net = make_pair_of_switches();
  net->message(0, 0, 2);
  for (const std::size_t h : {1, 2, 3}) net->ack(h, 2);
  std::vector<wire::RoceHeaders> seen;
  net->on_trunk = [&](std::size_t, std::size_t, const wire::RoceHeaders& h) { seen.push_back(h); };
  net->data(2, 0);
  net->ack(0, 0);
  net->ack(1, 3);
  ASSERT_EQ(seen.size(), 2u);
  const Qpn base((net->start_psn() + 3).value());
  EXPECT_EQ(seen[0].ip.source, TestNetwork::ip(2));
  EXPECT_EQ(seen[0].ip.destination, TestNetwork::kGroup);
  EXPECT_EQ(seen[0].bth.destination_qp, base);
  EXPECT_EQ(seen[0].bth.psn, net->start_psn() + 3);
  EXPECT_EQ(seen[1].bth.opcode, Opcode::kRcAcknowledge);
  EXPECT_EQ(seen[1].ip.source, TestNetwork::kGroup);
  EXPECT_EQ(seen[1].ip.destination, TestNetwork::ip(2));
  EXPECT_EQ(seen[1].bth.destination_qp, base);
  EXPECT_EQ(seen[1].bth.psn, net->start_psn() + 3);
}

TEST(Tree, HoldsANewcomerAtTheSwitchThatStillWaits) {
  auto net = make_pair_of_switches();
  net->data(2, 0);
  net->ack(3, 0);
  net->ack(0, 0);  // host 1 is late
  net->clear();
  net->data(0, 0);
  EXPECT_EQ(net->payloads.in_use(), 1u);
  net->ack(1, 0);
  EXPECT_EQ(net->inbox(2), Texts({"ack 0", "data 0"}));
  EXPECT_EQ(net->inbox(3), Texts({"data 1"}));

  // Now the near switch's turn has ended, the far one's has not.
  net->ack(1, 1);
  net->ack(2, 0);
  net->clear();
  net->lose = [](std::size_t, std::size_t, const std::string& t) { return t.starts_with("ack"); };
  net->ack(3, 1);  // this aggregate is lost on its way
  net->lose = nullptr;
  EXPECT_EQ(net->inbox(0), Texts());
  net->data(0, 0);  // so its source repeats
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  EXPECT_EQ(net->count(Counter::kLostAggregateAnswered, 1), 1u);
}

TEST(Tree, GatesBetweenSwitchesByRnrThatIsTagged) {
  auto net = make_pair_of_switches(true, [](SwitchConfig& c) { c.max_held = 0; });
  net->data(0, 0);
  net->ack(1, 0);
  net->ack(2, 0);  // host 3 is late; host 1 already begins, its switch waits for the trunk
  net->clear();
  net->data(1, 0);
  EXPECT_EQ(net->inbox(1), Texts({"rnr 0 t1"}));
  net->ack(3, 0);
  net->data(1, 0);
  EXPECT_EQ(net->inbox(3), Texts({"data 1"}));
}

TEST(Tree, AnswersOldDuplicatesUnderTheirOldName) {
  auto net = make_pair_of_switches();
  net->lose = [](std::size_t from, std::size_t, const std::string& t) {
    return from == 1 && t.starts_with("ack");
  };
  net->data(0, 0);
  for (const std::size_t h : {1, 2, 3}) net->ack(h, 0);
  EXPECT_EQ(net->inbox(0), Texts());
  net->lose = nullptr;
  net->clear();
  // Host 2 has all of it and begins: its leaf admits it, the near switch waits for the trunk's
  // answer to the old turn.
  net->data(2, 0);
  EXPECT_EQ(net->inbox(1), Texts());
  // The old source repeats a packet; the far switch answers for a turn that is over there.
  net->data(0, 0);
  EXPECT_EQ(net->count(Counter::kOldDuplicateAnswered, 1), 1u);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "data 0"}));
  EXPECT_EQ(net->inbox(1), Texts({"data 1"}));
}

TEST(Tree, IgnoresFeedbackOfAnotherTurn) {
  auto net = make_pair_of_switches();
  net->data(0, 0);
  net->clear();
  auto h = net->headers_from(2, Opcode::kRcAcknowledge, 0);
  h.ip.source = TestNetwork::kGroup;
  h.ip.destination = TestNetwork::ip(0);
  h.bth.destination_qp = Qpn((net->start_psn() + 5).value());
  SwitchOutput out;
  net->sw(0).on_packet(net->now(), net->port_between(0, 1), net->make_frame(2, h), out);
  EXPECT_EQ(net->count(Counter::kDropFeedbackOtherTurn), 1u);
  h.bth.destination_qp = Qpn(net->start_psn().value());
  h.ip.destination = TestNetwork::ip(1);
  net->sw(0).on_packet(net->now(), net->port_between(0, 1), net->make_frame(2, h), out);
  EXPECT_EQ(net->count(Counter::kDropFeedbackOtherTurn), 2u);
  h.ip.destination = TestNetwork::ip(0);
  net->sw(0).on_packet(net->now(), net->port_between(0, 1), net->make_frame(2, h), out);
  EXPECT_EQ(net->count(Counter::kDropFeedbackOtherTurn), 2u);
  EXPECT_EQ(net->view(0).paths[net->view(0).paths.size() - 1].lag, 0u);
}

TEST(Tree, DropsATurnThatDoesNotFollowTheLast) {
  auto net = make_pair_of_switches();
  net->data(0, 0);
  for (const std::size_t h : {1, 2, 3}) net->ack(h, 0);
  net->clear();
  auto h = net->headers_from(1, Opcode::kRcSendOnly, 5);
  h.bth.destination_qp = Qpn((net->start_psn() + 5).value());
  SwitchOutput out;
  net->sw(1).on_packet(net->now(), net->port_between(1, 0), net->make_frame(1, h, 8), out);
  EXPECT_TRUE(out.emits.empty());
  EXPECT_EQ(net->count(Counter::kDropConflict, 1), 1u);
}

TEST(Tree, PassesCongestionNotificationsUpTheTree) {
  auto net = make_pair_of_switches();
  net->data(0, 0);
  net->clear();
  net->cnp(3);
  EXPECT_EQ(net->inbox(0), Texts({"cnp"}));
}

// Two leaves under two spines: every remote host has two equal-cost ports.
struct Clos : ::testing::Test {
  Clos() {
    for (int s = 0; s < 4; ++s) net.add_switch();  // leaves 0 and 1, spines 2 and 3
    for (const std::size_t leaf : {0, 1}) {
      for (const std::size_t spine : {2, 3}) net.link(leaf, spine);
      for (int h = 0; h < 2; ++h) net.add_host(leaf);
    }
    net.start();
  }
  TestNetwork net;
};

void register_another(TestNetwork& net) {
  auto message = TestNetwork::message_about(
      wire::MrpType::kRegister, {net.member(0), net.member(1), net.member(2), net.member(3)});
  message.header.mcst_id = McstId(198, 18, 1, 0);
  net.send_message(0, message);
}

TEST_F(Clos, OneGroupTakesOneOfTheEqualPaths) {
  net.register_group(0, 1);
  net.set_up_group();  // a repeat comes the same way
  EXPECT_EQ(net.sw(2).group_count() + net.sw(3).group_count(), 1u);
  EXPECT_EQ(net.sw(1).group_count(), 1u);
  net.data(0, 0);
  EXPECT_EQ(net.inbox(3).back(), "data 0");
}

TEST_F(Clos, AvoidsAPortThatIsDown) {
  const PortId to_first = net.port_between(0, 2);
  net.set_port(0, to_first, false);
  net.set_up_group();
  EXPECT_EQ(net.sw(2).group_count(), 0u);
  EXPECT_EQ(net.sw(3).group_count(), 1u);
}

TEST_F(Clos, TakesThePathThatFewerGroupsUse) {
  net.set_up_group();
  register_another(net);
  EXPECT_EQ(net.sw(2).group_count(), 1u);
  EXPECT_EQ(net.sw(3).group_count(), 1u);
}

// The hash is the same for both: it is of the group, not of other traffic over the port.
TEST(ClosByHash, TakesAPathThatGroupAndSwitchDetermine) {
  TestNetwork net;
  for (int s = 0; s < 4; ++s) net.add_switch();
  for (const std::size_t leaf : {0, 1}) {
    for (const std::size_t spine : {2, 3}) net.link(leaf, spine);
    for (int h = 0; h < 2; ++h) net.add_host(leaf);
    net.config(leaf).rules.fewest_groups = false;
  }
  net.start();
  net.set_up_group();
  register_another(net);
  net.register_group(0, 2);
  EXPECT_EQ(net.sw(2).group_count() + net.sw(3).group_count(), 2u) << "the old epoch is replaced";
}

// A leaf knows of its own groups only: if all began with their first port, groups of different
// leaves would meet at one spine.
TEST(WideClos, LeavesWithoutGroupsBeginWithDifferentSpines) {
  std::set<std::size_t> taken;
  for (std::size_t leaf = 0; leaf < 8; ++leaf) {
    TestNetwork net;
    for (int s = 0; s < 10; ++s) net.add_switch();  // spines 8 and 9
    for (std::size_t from = 0; from < 8; ++from) {
      for (const std::size_t spine : {8, 9}) net.link(from, spine);
    }
    net.add_host(leaf);  // the leader's
    net.add_host((leaf + 1) % 8);
    net.start();
    net.set_up_group();
    taken.insert(net.sw(8).group_count() > 0 ? 8 : 9);
  }
  EXPECT_EQ(taken.size(), 2u);
}

TEST_F(Clos, RefusesWithNoRouteOnceTheChosenPathIsDown) {
  net.register_group(0, 1);
  net.clear();
  const bool by_first = net.sw(2).group_count() > 0;
  net.set_port(0, net.port_between(0, by_first ? 2 : 3), false);
  net.clear();
  // Members may have been reached: with the other path it would be no tree.
  net.register_group(0, 1);
  EXPECT_EQ(net.inbox(0), Texts({"reject e1 no route 10.0.0.3"}));
}

TEST_F(Clos, RefusesARegistrationThatComesFromTwoSides) {
  net.register_group(0, 1);
  net.clear();
  const std::size_t other = net.sw(2).group_count() > 0 ? 3 : 2;
  const std::vector<wire::MrpMember> member{net.member(2)};
  net.inject_at(other, net.port_between(other, 0),
                TestNetwork::control_bytes(0, wire::MrpType::kRegister, 1, member));
  EXPECT_EQ(net.inbox(0), Texts({"reject e1 no route"}));
  EXPECT_EQ(net.inbox(2), Texts());
}

}  // namespace
}  // namespace cepheus::fabric
