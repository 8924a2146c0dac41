#include "controller/membership.h"

#include <gtest/gtest.h>

#include "controller/test_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using MemberState = Membership::State;
using MemberTask = Membership::Task;
using wire::MrpReject;
using wire::MrpType;

// One member with its answers to the last message.
struct Member {
  Membership membership{member(1)};
  std::vector<MrpMessage> answers;

  MemberTask receive(const MrpMessage& m, Ipv4 from = host(0)) {
    Outbox out;
    const MemberTask task = membership.on_message(kStart, from, m, out);
    answers = out.messages;
    return task;
  }
  void connected(bool ok) {
    Outbox out;
    membership.connected(kStart, ok, out);
    answers = out.messages;
  }
  void join();
};

MrpMessage register_message() { return of_group(MrpType::kRegister, {member(1)}); }

void Member::join() {
  EXPECT_EQ(receive(register_message()), MemberTask::kRegistered);
  EXPECT_EQ(receive(of_group(MrpType::kConnect)), MemberTask::kConnect);
  connected(true);
  EXPECT_EQ(receive(of_group(MrpType::kActivate)), MemberTask::kActivated);
}

void expect_confirm(const std::vector<MrpMessage>& answers, MrpType of) {
  ASSERT_EQ(answers.size(), 1u);
  const MrpMessage& m = answers[0];
  EXPECT_EQ(m.header.type, MrpType::kConfirm);
  EXPECT_EQ(m.header.flags, static_cast<std::uint16_t>(of));
  EXPECT_EQ(m.header.mcst_id, kGroup);
  EXPECT_EQ(m.header.epoch, kEpoch);
  EXPECT_EQ(m.header.instance, kInstance);
  ASSERT_EQ(m.member_count, 1u);
  EXPECT_EQ(m.members[0], bare(1));
}

void expect_reject(const std::vector<MrpMessage>& answers, MrpReject reason) {
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.type, MrpType::kReject);
  EXPECT_EQ(answers[0].header.flags, static_cast<std::uint16_t>(reason));
  ASSERT_EQ(answers[0].member_count, 1u);
  EXPECT_EQ(answers[0].members[0], bare(1));
}

TEST(Membership, ConfirmsConnectOnlyOnceItsQueuePairIsUp) {
  Member m;
  EXPECT_EQ(m.receive(register_message()), MemberTask::kRegistered);
  expect_confirm(m.answers, MrpType::kRegister);
  EXPECT_EQ(m.receive(of_group(MrpType::kActivate)), MemberTask::kNone);
  EXPECT_TRUE(m.answers.empty());
  EXPECT_EQ(m.receive(of_group(MrpType::kConnect)), MemberTask::kConnect);
  EXPECT_TRUE(m.answers.empty());
  EXPECT_EQ(m.receive(of_group(MrpType::kConnect)), MemberTask::kNone);  // repeated meanwhile
  EXPECT_TRUE(m.answers.empty());
  m.connected(true);
  expect_confirm(m.answers, MrpType::kConnect);
}

TEST(Membership, RefusesAReductionGroupThatItIsNotMadeFor) {
  Member m;
  MrpMessage message = register_message();
  message.reduction = wire::MrpReduction{wire::MrpReduction::kValues, 4096, 64};
  EXPECT_EQ(m.receive(message), MemberTask::kNone);
  expect_reject(m.answers, MrpReject::kNotMember);
  EXPECT_EQ(m.receive(register_message()), MemberTask::kRegistered);
  m.membership = Membership(member(1), 4096, true);
  EXPECT_EQ(m.receive(register_message()), MemberTask::kNone);
  expect_reject(m.answers, MrpReject::kNotMember);
  EXPECT_EQ(m.receive(message), MemberTask::kRegistered);
  EXPECT_EQ(m.membership.reduction(), *message.reduction);
}

// In units that divide a value, an operation would have more packets than its windows.
TEST(Membership, RefusesReductionGroupsThatNoSwitchServes) {
  Member m;
  m.membership = Membership(member(1), 4096, true);
  MrpMessage message = register_message();
  const auto expect_refused = [&](const wire::MrpReduction& reduction, MrpReject why) {
    message.reduction = reduction;
    EXPECT_EQ(m.receive(message), MemberTask::kNone) << reduction.unit;
    expect_reject(m.answers, why);
  };
  constexpr auto kValues = wire::MrpReduction::kValues;
  for (const std::uint16_t unit : {0, 1, 4, 7, 12, 4095, 4104})
    expect_refused({kValues, unit, 64}, MrpReject::kMalformed);
  expect_refused({kValues, 4096, 63}, MrpReject::kMalformed);
  expect_refused({1, 4096, 64}, MrpReject::kNotServed);
  message.reduction = wire::MrpReduction{kValues, 8, 64};
  EXPECT_EQ(m.receive(message), MemberTask::kRegistered);
}

TEST(MembersOfAReduction, KnowWhetherTheGroupIsFlat) {
  for (const std::uint8_t flags : {0, 1, 2}) {
    Member m;
    m.membership = Membership(member(1), 4096, true);
    MrpMessage message = register_message();
    message.reduction = wire::MrpReduction{wire::MrpReduction::kValues, 4096, 64, true};
    m.receive(message);
    m.receive(of_group(MrpType::kConnect));
    m.connected(true);
    message = of_group(MrpType::kActivate);
    message.tree = wire::MrpTree{1, flags, host(0), host(1), 2};
    EXPECT_EQ(m.receive(message), MemberTask::kActivated);
    EXPECT_EQ(m.membership.is_flat(), flags == wire::MrpTree::kGroupIsFlat);
    EXPECT_TRUE(m.membership.reduction().ascends);
  }
}

TEST(Membership, SendsItsPathMtuAndTakesTheGroups) {
  Member m;
  m.membership = Membership(member(1), 4096);
  m.receive(register_message());
  ASSERT_EQ(m.answers.size(), 1u);
  EXPECT_EQ(m.answers[0].path, (wire::MrpPath{4096, 0}));
  MrpMessage connect = of_group(MrpType::kConnect);
  connect.path.reset();
  EXPECT_EQ(m.receive(connect), MemberTask::kNone) << "it would have its own";
  connect.path = wire::MrpPath{1024, 0};
  EXPECT_EQ(m.receive(connect), MemberTask::kConnect);
  EXPECT_EQ(m.membership.path().mtu, 1024);
}

TEST(Membership, ConfirmsEveryRepeatedMessageAgainWithoutActingTwice) {
  Member m;
  m.join();
  EXPECT_EQ(m.receive(register_message()), MemberTask::kNone);
  expect_confirm(m.answers, MrpType::kRegister);
  EXPECT_EQ(m.receive(of_group(MrpType::kConnect)), MemberTask::kNone);
  expect_confirm(m.answers, MrpType::kConnect);
  EXPECT_EQ(m.receive(of_group(MrpType::kActivate)), MemberTask::kNone);
  expect_confirm(m.answers, MrpType::kActivate);
  EXPECT_EQ(m.receive(of_group(MrpType::kUnregister)), MemberTask::kDissolved);
  expect_confirm(m.answers, MrpType::kUnregister);
  EXPECT_EQ(m.receive(of_group(MrpType::kUnregister)), MemberTask::kNone);
  expect_confirm(m.answers, MrpType::kUnregister);
  EXPECT_EQ(m.membership.state(), MemberState::kGone);
}

TEST(Membership, NotifiesTheLeaderThatItsSwitchLeavesThePsnsToHosts) {
  Member m;
  MrpMessage message = register_message();
  message.header.flags = wire::MrpHeader::kHostSync;
  EXPECT_EQ(m.receive(message), MemberTask::kRegistered);
  EXPECT_TRUE(m.membership.host_sync());
  ASSERT_EQ(m.answers.size(), 1u);
  EXPECT_EQ(m.answers[0].header.flags,
            wire::MrpHeader::kHostSync | static_cast<int>(MrpType::kRegister));
}

TEST(Membership, IgnoresARegistrationThatNamesOthers) {
  Member m;
  EXPECT_EQ(m.receive(of_group(MrpType::kRegister, {member(2)})), MemberTask::kNone);
  EXPECT_EQ(m.receive(of_group(MrpType::kRegister, {{host(1), wire::Qpn(0x99), 0}})),
            MemberTask::kNone);
  EXPECT_TRUE(m.answers.empty());
  EXPECT_EQ(m.membership.state(), MemberState::kWaiting);
}

// A stranger may know the address and the queue pair, but not the token.
TEST(Membership, NeitherHeedsNorAnswersWhoDoesNotKnowItsToken) {
  Member m;
  MrpMember guessed = member(1);
  for (const std::uint32_t token : {0u, guessed.token + 1}) {
    guessed.token = token;
    EXPECT_EQ(m.receive(of_group(MrpType::kRegister, {guessed}), host(7)), MemberTask::kNone);
    EXPECT_EQ(m.receive(of_group(MrpType::kGiveUp, {guessed}), host(7)), MemberTask::kNone);
    EXPECT_TRUE(m.answers.empty());
    EXPECT_EQ(m.membership.state(), MemberState::kWaiting);
  }
  m.receive(register_message());
  EXPECT_EQ(m.receive(of_group(MrpType::kGiveUp, {member(1)}), host(7)), MemberTask::kNone)
      << "one that has answered is its leader's, who has the address that it answered to";
  EXPECT_EQ(m.membership.state(), MemberState::kRegistered);
  EXPECT_EQ(m.receive(of_group(MrpType::kGiveUp, {member(1)})), MemberTask::kDissolved);
}

TEST(Membership, RefusesASecondLeader) {
  Member m;
  m.join();
  MrpMessage second = register_message();
  second.header.mcst_id = Ipv4(198, 18, 9, 9);
  second.header.instance = 0xBEEF;
  EXPECT_EQ(m.receive(second, host(2)), MemberTask::kNone);
  expect_reject(m.answers, MrpReject::kIdInUse);
  EXPECT_EQ(m.answers[0].header.mcst_id, second.header.mcst_id);
  EXPECT_EQ(m.answers[0].header.instance, 0xBEEFu);
  EXPECT_EQ(m.membership.state(), MemberState::kActive);
  EXPECT_EQ(m.membership.id(), kGroup);
}

TEST(Membership, RefusesAnotherProcessOnTheLeadersHost) {
  Member m;
  m.join();
  MrpMessage second = register_message();
  second.header.instance += 1;
  m.receive(second);
  expect_reject(m.answers, MrpReject::kIdInUse);
}

TEST(Membership, ServesOneEpochOnly) {
  Member m;
  m.join();
  MrpMessage older = register_message();
  older.header.epoch -= 1;
  EXPECT_EQ(m.receive(older), MemberTask::kNone);
  EXPECT_TRUE(m.answers.empty());
  MrpMessage newer = register_message();
  newer.header.epoch += 1;
  EXPECT_EQ(m.receive(newer), MemberTask::kNone);
  expect_reject(m.answers, MrpReject::kIdInUse);
}

TEST(Membership, RefusesOthersWhenItLeadsItself) {
  Member m;
  ASSERT_TRUE(m.membership.lead(Ipv4(198, 18, 1, 1), 1, 0x77));
  EXPECT_FALSE(m.membership.lead(Ipv4(198, 18, 1, 1), 1, 0x77));
  EXPECT_EQ(m.receive(register_message()), MemberTask::kNone);
  expect_reject(m.answers, MrpReject::kIdInUse);
}

TEST(Membership, DoesNotLeadWhatALeaderHasAlready) {
  Member m;
  m.receive(register_message());
  EXPECT_FALSE(m.membership.lead(Ipv4(198, 18, 1, 1), 1, 0x77));
  EXPECT_EQ(m.membership.leader(), host(0));
}

TEST(Membership, HeedsOnlyItsLeader) {
  Member m;
  m.join();
  EXPECT_EQ(m.receive(of_group(MrpType::kUnregister), host(3)), MemberTask::kNone);
  MrpMessage other_epoch = of_group(MrpType::kUnregister);
  other_epoch.header.epoch += 1;
  EXPECT_EQ(m.receive(other_epoch), MemberTask::kNone);
  EXPECT_EQ(m.receive(of_group(MrpType::kGiveUp, {member(1)}), host(3)), MemberTask::kNone);
  EXPECT_TRUE(m.answers.empty());
  EXPECT_EQ(m.membership.state(), MemberState::kActive);
}

TEST(Membership, IgnoresLaterStepsBeforeItWasRegistered) {
  Member m;
  for (const auto type : {MrpType::kConnect, MrpType::kActivate, MrpType::kUnregister}) {
    EXPECT_EQ(m.receive(of_group(type)), MemberTask::kNone);
    EXPECT_TRUE(m.answers.empty());
  }
  EXPECT_EQ(m.receive(register_message()), MemberTask::kRegistered);
}

MrpMessage given_up(MrpReject reason) {
  MrpMessage m = of_group(MrpType::kGiveUp, {member(1)});
  m.header.flags = static_cast<std::uint16_t>(reason);
  return m;
}

TEST(Membership, LearnsThatTheLeaderGaveUpEvenWithoutARegister) {
  Member m;
  EXPECT_EQ(m.receive(given_up(MrpReject::kTableFull)), MemberTask::kDissolved);
  EXPECT_EQ(m.membership.state(), MemberState::kFailed);
  EXPECT_EQ(m.membership.reject_reason(), MrpReject::kTableFull);
  EXPECT_EQ(m.receive(given_up(MrpReject::kTableFull)), MemberTask::kNone);
}

// Anybody can send one, to every queue pair of a host if need be.
TEST(Membership, BelievesNoStrangerThatItsRegistrationIsOver) {
  Member m;
  MrpMessage guessed = given_up(MrpReject::kTableFull);
  guessed.members[0] = bare(1);
  EXPECT_EQ(m.receive(guessed, host(9)), MemberTask::kNone);
  EXPECT_EQ(m.membership.state(), MemberState::kWaiting);
  EXPECT_EQ(m.receive(register_message()), MemberTask::kRegistered);
  EXPECT_EQ(m.receive(guessed, host(9)), MemberTask::kNone);
  EXPECT_EQ(m.receive(of_group(MrpType::kConnect)), MemberTask::kConnect);
  m.connected(true);
  expect_confirm(m.answers, MrpType::kConnect);
  EXPECT_EQ(m.receive(guessed, host(9)), MemberTask::kNone);
  EXPECT_EQ(m.receive(guessed), MemberTask::kDissolved) << "its leader's counts";
}

TEST(Membership, ComplainsToItsLeaderAboutPresence) {
  Member m;
  Outbox out;
  m.membership.send_request(out);
  EXPECT_TRUE(out.messages.empty()) << "not active yet";
  m.join();
  m.membership.send_request(out);
  ASSERT_EQ(out.messages.size(), 1u);
  EXPECT_EQ(out.messages[0].header.type, MrpType::kComplain);
  EXPECT_EQ(out.messages[0].header.flags, wire::MrpHeader::kPresence);
  ASSERT_EQ(out.messages[0].member_count, 1u);
  EXPECT_EQ(out.messages[0].members[0].control_port, member(1).control_port);
  MrpMessage yes = of_group(MrpType::kAlive, {bare(1)});
  yes.header.flags = wire::MrpHeader::kPresence;
  EXPECT_EQ(m.receive(yes, host(3)), MemberTask::kNone);
  EXPECT_EQ(m.receive(yes), MemberTask::kStands);
  EXPECT_EQ(m.receive(given_up(MrpReject::kNotMember)), MemberTask::kDissolved) << "it does not";
  EXPECT_EQ(m.membership.state(), MemberState::kGone);
  EXPECT_EQ(m.membership.reject_reason(), MrpReject::kNotMember);
}

// Only its own switch can send it a REJECT: hosts send to the leader.
TEST(Membership, BelievesItsSwitchThatTheGroupIsNoMore) {
  Member m;
  MrpMessage unknown = of_group(MrpType::kReject);
  unknown.header.flags = static_cast<std::uint16_t>(MrpReject::kNotMember);
  EXPECT_EQ(m.receive(unknown, Ipv4(10, 255, 0, 1)), MemberTask::kNone)
      << "it waits for its leader";
  m.join();
  MrpMessage other = unknown;
  ++other.header.instance;
  EXPECT_EQ(m.receive(other, Ipv4(10, 255, 0, 1)), MemberTask::kNone);
  MrpMessage of_another = unknown;
  of_another.add(bare(2));
  EXPECT_EQ(m.receive(of_another, host(2)), MemberTask::kNone) << "a member speaks of itself";
  EXPECT_EQ(m.receive(unknown), MemberTask::kNone) << "its leader says UNREGISTER or GIVE_UP";
  EXPECT_EQ(m.receive(unknown, Ipv4(10, 255, 0, 1)), MemberTask::kDissolved);
  EXPECT_EQ(m.membership.state(), MemberState::kGone);
  EXPECT_EQ(m.membership.reject_reason(), MrpReject::kNotMember);
  EXPECT_EQ(m.receive(unknown, Ipv4(10, 255, 0, 1)), MemberTask::kNone);
}

// Serves every deadline up to then; how often it spoke.
int sent(Membership& membership, Duration until) {
  Outbox out;
  while (membership.deadline() <= kStart + until) {
    membership.on_timer(membership.deadline(), out);
  }
  return static_cast<int>(out.messages.size());
}

TEST(Membership, NotifiesItsLeaderThatItFailedUntilItIsAnswered) {
  Member m;
  m.join();
  Outbox out;
  m.membership.leave(kStart, out);
  expect_reject(out.messages, MrpReject::kMemberFailed);
  EXPECT_EQ(m.membership.state(), MemberState::kFailed);
  EXPECT_GE(sent(m.membership, 250ms), 2);
  EXPECT_EQ(m.receive(of_group(MrpType::kUnregister)), MemberTask::kNone);
  expect_confirm(m.answers, MrpType::kUnregister);
  EXPECT_EQ(sent(m.membership, 1h), 0);
}

// As it waits for its switch to confirm its regions: the leader does not hear of it otherwise.
TEST(Membership, NotifiesItsLeaderThatItFailedBeforeItConfirmed) {
  Member m;
  EXPECT_EQ(m.receive(register_message()), MemberTask::kRegistered);
  EXPECT_EQ(m.receive(of_group(MrpType::kConnect)), MemberTask::kConnect);
  Outbox out;
  m.membership.leave(kStart, out);
  expect_reject(out.messages, MrpReject::kMemberFailed);
  EXPECT_GE(sent(m.membership, 250ms), 2);
  m.connected(true);
  EXPECT_TRUE(m.answers.empty());
  EXPECT_EQ(m.membership.state(), MemberState::kFailed);
}

TEST(Membership, RejectsUntilItIsAnsweredWhenItsQueuePairFails) {
  Member m;
  m.receive(register_message());
  m.receive(of_group(MrpType::kConnect));
  m.connected(false);
  expect_reject(m.answers, MrpReject::kMemberFailed);
  EXPECT_EQ(m.membership.state(), MemberState::kFailed);
  EXPECT_GE(sent(m.membership, 250ms), 2);
  EXPECT_EQ(m.receive(of_group(MrpType::kUnregister)), MemberTask::kNone);
  EXPECT_EQ(sent(m.membership, 1h), 0);
}

TEST(Membership, GivesUpOnALeaderThatNeverAnswers) {
  Member m;
  m.join();
  Outbox out;
  m.membership.leave(kStart, out);
  EXPECT_LT(sent(m.membership, 1h), 10);
  EXPECT_EQ(m.membership.deadline(), wire::kNever);
}

TEST(Membership, NotifiesNoLeaderBeforeItHasJoinedOrWhenItLeads) {
  for (const bool leads : {false, true}) {
    Member m;
    if (leads) m.membership.lead(kGroup, kEpoch, kInstance);
    Outbox out;
    m.membership.leave(kStart, out);
    EXPECT_TRUE(out.messages.empty());
  }
}

TEST(Membership, AnswersALateRegistrationThatItHasEnded) {
  Member m;
  m.join();
  m.receive(of_group(MrpType::kUnregister));
  MrpMessage other = register_message();
  other.header.mcst_id = Ipv4(198, 18, 9, 9);
  m.receive(other);
  expect_reject(m.answers, MrpReject::kNotMember);
  m.receive(register_message());  // its own, late
  EXPECT_TRUE(m.answers.empty());
}

}  // namespace
}  // namespace cepheus::mrp
