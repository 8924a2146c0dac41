// Handling of answers on their way to the leader, host 0.
#include "switch-emulator/engine/registration/answers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using wire::MrpType;

TEST(Confirm, IsMergedOnceAllHaveConfirmed) {
  auto net = make_star(4, false);
  net->register_group(0, 1);
  net->confirm(3, MrpType::kRegister);
  net->confirm(1, MrpType::kRegister);
  EXPECT_EQ(net->inbox(0), Texts());
  net->confirm(2, MrpType::kRegister);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.3 10.0.0.4"}));
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts()) << "sent once";
}

TEST(Confirm, GoesOnAfterAShortWaitForThoseThatHave) {
  auto net = make_star(4, false);
  net->register_group(0, 1);
  net->confirm(1, MrpType::kRegister);
  net->advance(1ms);
  net->confirm(2, MrpType::kRegister);
  EXPECT_EQ(net->inbox(0), Texts());
  net->advance(1ms);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.3"}));
  net->confirm(3, MrpType::kRegister);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.4"})) << "the last one need not wait";
}

TEST(Confirm, FillsDatagramsOfALargeGroup) {
  auto net = make_star(600, false);
  net->register_group(0, 1);
  for (std::size_t h = 1; h < 600; ++h) net->confirm(h, MrpType::kRegister);
  EXPECT_EQ(net->inbox(0).size(),
            (599 + wire::MrpMessage::kMaxMembers - 1) / wire::MrpMessage::kMaxMembers);
}

TEST(Confirm, OfASignedFabricIsVerifiedAndSignedAgain) {
  const auto key = std::make_shared<const wire::MrpKey>(
      *wire::MrpKey::parse("000102030405060708090a0b0c0d0e0f"));
  auto net = make_star(3, false, [&](SwitchConfig& c) { c.mrp_key = key; });
  net->register_group(0, 1);
  net->confirm(1, MrpType::kRegister);
  const auto other = std::make_shared<const wire::MrpKey>(
      *wire::MrpKey::parse("ff0102030405060708090a0b0c0d0e0f"));
  net->sign_with = other.get();
  net->confirm(2, MrpType::kRegister);
  EXPECT_EQ(net->count(Counter::kDropMrpUnauthenticated), 1u);
  EXPECT_EQ(net->inbox(0), Texts());
  net->sign_with = nullptr;
  net->confirm(2, MrpType::kRegister);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.3"}));
}

// The leader did not get the answer about host 2: the switch can send it again.
TEST(Confirm, ThatWasLostIsRepeatedWithoutTheMember) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  net->confirm(1, MrpType::kRegister);
  net->lose = [](std::size_t from, std::size_t, const std::string&) { return from == 1; };
  net->confirm(2, MrpType::kRegister);
  net->confirm(3, MrpType::kRegister);
  net->lose = nullptr;
  net->advance(2ms);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2"}));
  net->clear();
  net->register_group(0, 1, {0, 2, 3});
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->inbox(3), Texts());
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.3 10.0.0.4"}));
}

TEST(Confirm, IsRequestedAgainOnlyWhereItIsMissing) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  for (const std::size_t h : {1, 2, 3}) net->confirm(h, MrpType::kRegister);
  net->control(0, MrpType::kActivate, 1);
  net->confirm(1, MrpType::kActivate);
  net->confirm(2, MrpType::kActivate);
  net->clear();
  Texts over;
  net->lose = [&](std::size_t, std::size_t, const std::string& t) {
    over.push_back(t);
    return false;
  };
  net->control(0, MrpType::kActivate, 1, {net->member(2), net->member(3)});
  EXPECT_EQ(over, Texts({"activate e1 10.0.0.3 10.0.0.4"}))
      << "the leaf there has not sent its CONFIRMs yet";
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->inbox(3), Texts({"activate e1"}));
  net->advance(4ms);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2", "confirm e1 10.0.0.3"}));
  net->confirm(3, MrpType::kActivate);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.4"}));
}

// Its leaf does not know it. A switch above waits for another one, because it is in the count, but
// not for long.
TEST(Confirm, OfUnregisteringDoesNotWaitForEvictedMembers) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kEvict, 1, {net->member(3)});
  net->control(0, MrpType::kUnregister, 1);
  net->clear();
  net->confirm(1, MrpType::kUnregister);
  net->confirm(2, MrpType::kUnregister);
  net->advance(net->config(0).confirm_wait);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.3"}));
  net->confirm(3, MrpType::kUnregister);
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST(Confirm, OfAnAgedTableHasNoRecipient) {
  auto net = make_star(3, true, [](SwitchConfig& c) { c.age = 2s; });
  net->advance(3s);
  EXPECT_EQ(net->sw(0).tombstone_count(), 1u);
  net->clear();
  net->confirm(1, MrpType::kUnregister);
  net->confirm(2, MrpType::kUnregister);
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST(Confirm, CountsForItsStepAndEpochOnly) {
  auto net = make_star(2, false);
  net->register_group(0, 1);
  net->confirm(1, MrpType::kActivate);
  net->epoch = 2;
  net->confirm(1, MrpType::kRegister);
  net->epoch = 1;
  EXPECT_EQ(net->count(Counter::kDropMrpStale), 1u);
  EXPECT_EQ(net->count(Counter::kDropUnknownGroup), 1u);
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST(Confirm, IsAcceptedFromTheMembersOwnPortOnly) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1, {0, 1, 2});
  net->confirm(3, MrpType::kRegister);  // no member
  EXPECT_EQ(net->count(Counter::kDropNotMember, 1), 1u);
  auto forged = TestNetwork::message_about(MrpType::kConfirm, {net->member(2)});
  forged.header.flags = static_cast<std::uint16_t>(MrpType::kRegister);
  net->send_message(3, forged);  // about another
  EXPECT_EQ(net->count(Counter::kDropMrpForged, 1), 1u);
  forged.members[0].host = TestNetwork::ip(3);  // with another's queue pair
  net->send_message(3, forged);
  forged.members[0] = net->member(2);
  forged.header.instance = 2;  // to another leader
  net->send_message(2, forged);
  EXPECT_EQ(net->count(Counter::kDropMrpForeign, 1), 1u);
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts());
}

TEST(Answers, OfAMemberAndOfSwitchesReachTheLeader) {
  auto net = make_pair_of_switches();
  net->send_message(1, TestNetwork::message_about(MrpType::kComplain, {net->member(1)}));
  auto reject = TestNetwork::message_about(MrpType::kReject, {net->member(3)});
  reject.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kMemberFailed);
  net->send_message(3, reject);
  net->set_port(1, net->port_of(2), false);
  EXPECT_EQ(net->inbox(0), Texts({"complain e1 10.0.0.2",
                                  "reject e1 member could not bring its queue pair up 10.0.0.4",
                                  "report e1 10.0.0.3"}));
  EXPECT_EQ(net->count(Counter::kMrpReject, 0), 1u) << "counted where it passes";
}

TEST(Answers, OfSwitchesOnlyAreForgedIfAHostSendsThem) {
  auto net = make_star(4);
  net->send_message(2, TestNetwork::message_about(MrpType::kReport, {net->member(2)}));
  net->send_message(2, TestNetwork::message_about(MrpType::kReject, {net->member(1)}));
  net->send_message(2, TestNetwork::message_about(MrpType::kReject, {}));
  net->send_message(
      2, TestNetwork::message_about(MrpType::kComplain, {net->member(2), net->member(1)}));
  auto evicted = TestNetwork::message_about(MrpType::kConfirm, {net->member(2)});
  evicted.header.flags = static_cast<std::uint16_t>(MrpType::kEvict);
  net->send_message(2, evicted);
  EXPECT_EQ(net->count(Counter::kDropMrpForged), 5u);
  net->send_message(
      0, TestNetwork::message_about(MrpType::kReject, {net->member(0)}));  // the leader to itself
  EXPECT_EQ(net->count(Counter::kDropNotMember), 1u);
  EXPECT_EQ(net->inbox(0), Texts());
}

// A member that asks about the group would otherwise wait for an answer that can't come.
TEST(Answers, ComeFromTheSwitchOfAMemberAfterItsGroupHasEnded) {
  auto net = make_pair_of_switches();
  auto question = TestNetwork::message_about(MrpType::kComplain, {net->member(3)});
  question.header.flags = wire::MrpHeader::kPresence;
  net->send_message(3, question);
  EXPECT_EQ(net->inbox(0), Texts({"complain e1 10.0.0.4"}));
  EXPECT_EQ(net->inbox(3), Texts());
  net->control(0, MrpType::kEvict, 1, {net->member(3)});
  net->clear();
  net->send_message(3, question);
  EXPECT_EQ(net->inbox(3), Texts({"reject e1 evicted"}));
  net->control(0, MrpType::kUnregister, 1);
  net->advance(net->config(0).rest + 1s);
  net->clear();
  net->send_message(3, question);
  EXPECT_EQ(net->inbox(3), Texts({"reject e1 queue pair unknown to its host"}));
  net->send_message(3, TestNetwork::message_about(MrpType::kReject, {net->member(3)}));
  EXPECT_EQ(net->inbox(3), Texts()) << "a host that refuses waits for nothing";
  EXPECT_EQ(net->inbox(0), Texts());
}

// Another leader has registered the same McstID with the same epoch.
TEST(Answers, ComeFromTheSwitchOfAMemberWhoseGroupIsAnotherLeadersNow) {
  auto net = make_star(3);
  auto question = TestNetwork::message_about(MrpType::kComplain, {net->member(1)});
  question.header.instance = 2;
  net->send_message(1, question);
  EXPECT_EQ(net->inbox(1), Texts({"reject e1 queue pair unknown to its host"}));
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 1u);
  EXPECT_EQ(net->inbox(0), Texts());
}

// Its UNREGISTER was lost, and no leader repeats it.
TEST(Answers, AreGivenByTheSwitchThatFreedAGroupWithoutItsLeader) {
  auto net = make_star(3);
  net->set_port(0, net->port_of(0), false);
  net->advance(net->config(0).orphan_age * 2 + 2ms);
  ASSERT_EQ(net->sw(0).tombstone_count(), 1u);
  net->clear();
  net->send_message(1, TestNetwork::message_about(MrpType::kComplain, {net->member(1)}));
  EXPECT_EQ(net->inbox(1), Texts({"reject e1 queue pair unknown to its host"}));
}

TEST(Answers, AreLeftToALeaderThatHasUnregistered) {
  auto net = make_star(3);
  net->control(0, MrpType::kUnregister, 1);
  net->clear();
  net->send_message(1, TestNetwork::message_about(MrpType::kComplain, {net->member(1)}));
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(0), Texts({"complain e1 10.0.0.2"}));
}

// The switch can read only the header, and returns only that.
TEST(Answers, OfAMemberOfAnotherVersionReachTheLeader) {
  auto net = make_star(3, false);
  net->register_group(0, 1);
  auto refusal = TestNetwork::message_about(MrpType::kReject, {});
  refusal.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kVersion);
  net->send_message(2, refusal);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 another version of the registration protocol"}));
}

TEST(Answers, OfAStrangerAreDropped) {
  auto net = make_star(4, false);
  net->set_up_group();  // of all
  net->control(0, MrpType::kUnregister, 1);
  net->advance(10s);
  net->register_group(0, 2, {0, 1});
  net->clear();
  auto complaint = TestNetwork::message_about(MrpType::kComplain, {net->member(3)});
  complaint.header.epoch = 2;
  net->send_message(3, complaint);
  EXPECT_EQ(net->count(Counter::kDropNotMember), 1u);
  complaint.header.mcst_id = McstId(198, 18, 0, 99);
  net->send_message(3, complaint);
  EXPECT_EQ(net->count(Counter::kDropUnknownGroup), 1u);
  EXPECT_EQ(net->inbox(0), Texts());
}

// The last member there has gone: its switch may still report it.
TEST(Answers, OfASwitchThatIsLeftWithoutMembersReachTheLeader) {
  auto net = make_pair_of_switches();
  net->control(0, MrpType::kEvict, 1, {net->member(2), net->member(3)});
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.3 10.0.0.4"}));
}

TEST(Confirm, SeparatesMembersWithHostSync) {
  auto net = make_star(4, false);
  net->register_group(0, 1);
  net->confirm(1, MrpType::kRegister, true);
  net->confirm(2, MrpType::kRegister, false);
  net->confirm(3, MrpType::kRegister, true);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.3", "confirm e1 10.0.0.2 10.0.0.4"}));
}

// The core switch 1 has trunks only: to the leaf of hosts 0 and 1, and to those of 2 and of 3.
std::unique_ptr<TestNetwork> make_core() {
  auto net = std::make_unique<TestNetwork>();
  for (int s = 0; s < 4; ++s) net->add_switch();
  for (const std::size_t leaf : {0, 2, 3}) net->link(1, leaf);
  for (const std::size_t leaf : {0, 0, 2, 3}) net->add_host(leaf);
  net->start();
  net->register_group(0, 1);
  for (const std::size_t h : {1, 2, 3}) net->confirm(h, MrpType::kRegister);
  net->control(0, MrpType::kActivate, 1);
  net->clear();
  return net;
}

// To the core, from the leaf at `from`: host 2 has confirmed ACTIVATE.
void confirm_by_trunk(TestNetwork& net, std::size_t from) {
  const std::vector<wire::MrpMember> named{net.member(2)};
  const auto step = static_cast<std::uint16_t>(MrpType::kActivate);
  net.inject_at(1, net.port_between(1, from),
                TestNetwork::control_bytes(2, MrpType::kConfirm, 1, named, 1, 0, 1, nullptr, step));
}

TEST(Core, PassesARepeatOnByTheTrunksOfItsMembersOnly) {
  auto net = make_core();
  for (const std::size_t h : {1, 2}) net->confirm(h, MrpType::kActivate);
  Texts over;
  net->lose = [&](std::size_t from, std::size_t to, const std::string& t) {
    if (from == 1 && to != 0) over.push_back(std::to_string(to) + " " + t);
    return false;
  };
  net->control(0, MrpType::kActivate, 1, {net->member(3)});
  EXPECT_EQ(over, Texts({"3 activate e1 10.0.0.4"}));
  net->control(0, MrpType::kAlive, 1, {net->member(2)});
  EXPECT_EQ(over.back(), "2 alive e1 10.0.0.3");
  EXPECT_EQ(net->inbox(2), Texts({"alive e1"}));
  EXPECT_EQ(net->inbox(3), Texts({"activate e1"}));
}

TEST(Core, ConfirmsForAllAtOnceWithoutTheirNames) {
  auto net = make_core();
  for (const std::size_t h : {1, 2, 3}) net->confirm(h, MrpType::kActivate);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.3 10.0.0.4"}));
  net->control(0, MrpType::kUnregister, 1);
  for (const std::size_t h : {3, 2, 1}) net->confirm(h, MrpType::kUnregister);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.4 10.0.0.3"}));
}

// The core can't tell that it is the same one, and waits for no other. No member is lost by that.
TEST(Core, TreatsADuplicatedConfirmAsAnotherMembers) {
  auto net = make_core();
  Texts over;
  net->lose = [&](std::size_t from, std::size_t, const std::string& t) {
    if (from == 1) over.push_back(t);
    return false;
  };
  for (int i = 0; i < 2; ++i) confirm_by_trunk(*net, 2);
  EXPECT_EQ(over, Texts({"confirm e1 10.0.0.3"}));
  for (const std::size_t h : {3, 1}) net->confirm(h, MrpType::kActivate);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e1 10.0.0.2 10.0.0.3 10.0.0.4"}));
}

TEST(Core, AcceptsAConfirmOnlyOverATrunkWithMembers) {
  auto net = make_core();
  confirm_by_trunk(*net, 0);
  EXPECT_EQ(net->count(Counter::kDropNotMember, 1), 1u);
  net->advance(1s);
  EXPECT_EQ(net->inbox(0), Texts());
}

// The core has no name to subtract from its count, and EVICT is repeated.
TEST(Core, LosesNoOtherMemberByAnEvictionHoweverOftenItIsRepeated) {
  auto net = make_core();
  for (const std::size_t h : {1, 2, 3}) net->confirm(h, MrpType::kActivate);
  for (int i = 0; i < 3; ++i) net->control(0, MrpType::kEvict, 1, {net->member(2)});
  net->clear();
  net->control(0, MrpType::kAlive, 1, {net->member(3)});
  EXPECT_EQ(net->inbox(3), Texts({"alive e1"}));
  net->register_group(0, 2, {0, 1, 3});  // the same group again, without the evicted member
  net->epoch = 2;
  for (const std::size_t h : {1, 3}) net->confirm(h, MrpType::kRegister);
  net->control(0, MrpType::kActivate, 2);
  for (const std::size_t h : {1, 3}) net->confirm(h, MrpType::kActivate);
  EXPECT_EQ(net->inbox(0), Texts({"confirm e2 10.0.0.2 10.0.0.4", "confirm e2 10.0.0.2 10.0.0.4"}));
  EXPECT_TRUE(net->view(3).active);
}

// Of the trunk to the evicted member's leaf the core names no member: a leader ignores answers
// about a member that it has evicted.
TEST(Core, NamesAMemberBehindALostTrunkUnlessThatOneWasEvicted) {
  auto net = make_core();
  net->control(0, MrpType::kEvict, 1, {net->member(2)});
  net->clear();
  for (const std::size_t leaf : {2, 3}) net->set_port(1, net->port_between(1, leaf), false);
  EXPECT_EQ(net->inbox(0), Texts({"reject e1 a trunk on the way is down",
                                  "reject e1 a trunk on the way is down 10.0.0.4"}));
}

}  // namespace
}  // namespace cepheus::fabric
