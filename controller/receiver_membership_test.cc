#include "controller/receiver_membership.h"

#include <gtest/gtest.h>

#include "controller/test_sender_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using ReceiverState = ReceiverMembership::State;
using ReceiverTask = ReceiverMembership::Task;

constexpr std::uint64_t kShare = SenderGroupMessage::kWholeShare / 4;

SenderGroupMessage from_sender(MrpType type, std::uint64_t share, std::uint16_t seq = 1) {
  SenderGroupMessage m;
  m.header.type = type;
  m.header.epoch = 1;
  m.header.seq = seq;
  m.header.mcst_id = host(0);
  m.header.instance = kInstance;
  m.control_port = 41000;
  m.addressed = host(1);
  m.virtual_qpn = kVirtualQpn;
  m.sender_qpn = wire::Qpn(0x11);
  m.start = kStartPsn;
  m.share = share;
  m.add(member(1));
  return m;
}
SenderGroupMessage install(std::uint64_t share = kShare, std::uint16_t seq = 1) {
  return from_sender(MrpType::kInstall, share, seq);
}
SenderGroupMessage removal(MrpReject why) {
  SenderGroupMessage m = from_sender(MrpType::kRemove, kShare, 9);
  m.header.flags = static_cast<std::uint16_t>(why);
  return m;
}

// One receiver with its answers to the last message.
struct Receiver {
  ReceiverMembership membership{member(1)};
  std::vector<SenderGroupMessage> answers;

  ReceiverTask receive(const SenderGroupMessage& m, Instant now = kStart) {
    Outbox out;
    const ReceiverTask task = membership.on_message(now, m, out);
    answers = out.of_sender_groups;
    return task;
  }
  void connected(bool ok) {
    Outbox out;
    membership.connected(ok, out);
    answers = out.of_sender_groups;
  }
  void join() {
    EXPECT_EQ(receive(install()), ReceiverTask::kConnect);
    connected(true);
    EXPECT_EQ(receive(install(0, 2)), ReceiverTask::kActivated);
  }
};

void expect_answer(const std::vector<SenderGroupMessage>& answers, MrpType type,
                   std::uint16_t flags, const SenderGroupMessage& requested) {
  ASSERT_EQ(answers.size(), 1u);
  const SenderGroupMessage& m = answers[0];
  EXPECT_EQ(m.header.type, type);
  EXPECT_EQ(m.header.flags, flags);
  EXPECT_EQ(m.header.seq, requested.header.seq);
  EXPECT_EQ(m.header.epoch, requested.header.epoch);
  EXPECT_EQ(m.header.instance, requested.header.instance);
  EXPECT_EQ(m.share, requested.share);
  EXPECT_EQ(m.control_port, requested.control_port);  // where the sender's switch passes it on to
  EXPECT_EQ(m.virtual_qpn, requested.virtual_qpn);
  EXPECT_EQ(destination(m), host(0));
  ASSERT_EQ(m.receiver_count, 1u);
  EXPECT_EQ(m.receivers[0], bare(1));
  EXPECT_EQ(m.region_count, 0u);
}
void expect_installed(const std::vector<SenderGroupMessage>& answers, MrpType of,
                      const SenderGroupMessage& requested) {
  expect_answer(answers, MrpType::kInstalled, static_cast<std::uint16_t>(of), requested);
}
void expect_reject(const std::vector<SenderGroupMessage>& answers, MrpReject reason,
                   const SenderGroupMessage& requested) {
  expect_answer(answers, MrpType::kReject, static_cast<std::uint16_t>(reason), requested);
}

TEST(ReceiverMembership, AnswersOnceItsQueuePairIsUpWithTheShareThatCame) {
  Receiver r;
  EXPECT_EQ(r.receive(install()), ReceiverTask::kConnect);
  EXPECT_TRUE(r.answers.empty());
  EXPECT_EQ(r.membership.sender(), host(0));
  EXPECT_EQ(r.membership.virtual_qpn(), kVirtualQpn);
  EXPECT_EQ(r.membership.start_psn(), kStartPsn);
  r.connected(true);
  expect_installed(r.answers, MrpType::kInstall, install());
  EXPECT_EQ(r.membership.state(), ReceiverState::kConnected);
  // Over another path, and again.
  const SenderGroupMessage other = install(kShare - 5);
  EXPECT_EQ(r.receive(other), ReceiverTask::kNone);
  expect_installed(r.answers, MrpType::kInstall, other);
}

TEST(ReceiverMembership, AnswersForTheSmallestShareToo) {
  Receiver r;
  r.receive(install());
  r.connected(true);
  r.receive(install(1));
  expect_installed(r.answers, MrpType::kInstall, install(1));
}

TEST(ReceiverMembership, AnswersForAllPathsThatItWasNamedOverWhileItConnected) {
  Receiver r;
  r.receive(install(kShare, 3));
  r.receive(install(kShare, 3));
  r.connected(true);
  expect_installed(r.answers, MrpType::kInstall, install(2 * kShare, 3));
  Receiver later;
  later.receive(install(kShare, 3));
  later.receive(install(kShare - 1, 4));
  later.receive(install(kShare, 3));  // overtaken
  later.connected(true);
  expect_installed(later.answers, MrpType::kInstall, install(kShare - 1, 4));
}

TEST(ReceiverMembership, IsNamedOnceAndNotifiesItsSenderIfItLeavesBeforeItConnects) {
  Receiver r;
  SenderGroupMessage measuring = install();
  measuring.header.flags = SenderGroupMessage::kFresh | SenderGroupMessage::kMeasures;
  EXPECT_EQ(r.receive(measuring), ReceiverTask::kNamed);
  EXPECT_EQ(r.receive(measuring), ReceiverTask::kNone);
  expect_installed(r.answers, MrpType::kInstall, measuring);
  Outbox out;
  r.membership.leave(out);
  ASSERT_EQ(out.of_sender_groups.size(), 1u);
  EXPECT_EQ(out.of_sender_groups[0].header.type, MrpType::kReject);
  EXPECT_EQ(r.receive(install()), ReceiverTask::kNone);
  EXPECT_EQ(r.membership.state(), ReceiverState::kFailed);
}

TEST(ReceiverMembership, IsActiveWhenTheSenderNeedsNoMoreAnswers) {
  Receiver r;
  r.join();
  EXPECT_TRUE(r.answers.empty());
  EXPECT_EQ(r.membership.state(), ReceiverState::kActive);
  EXPECT_EQ(r.receive(install(0, 3)), ReceiverTask::kNone);  // once
  EXPECT_EQ(r.membership.installs_received(), 3u);
}

// After a change of its routes a switch sends INSTALL with share 0 as well, while others connect.
TEST(ReceiverMembership, IsNotActivatedByAChangedRouteDuringSetUp) {
  Receiver r;
  r.receive(install());
  r.connected(true);
  SenderGroupMessage of_switch = install(0);
  of_switch.header.flags = SenderGroupMessage::kFresh;
  EXPECT_EQ(r.receive(of_switch), ReceiverTask::kNone);
  EXPECT_TRUE(r.answers.empty());
  EXPECT_EQ(r.membership.state(), ReceiverState::kConnected);
  EXPECT_EQ(r.receive(install(0, 2)), ReceiverTask::kActivated);
}

TEST(ReceiverMembership, NeitherHeedsNorAnswersWhoDoesNotKnowItsToken) {
  Receiver r;
  SenderGroupMessage stranger = install();
  ++stranger.receivers[0].token;
  EXPECT_EQ(r.receive(stranger), ReceiverTask::kNone);
  stranger.header.type = MrpType::kRemove;
  EXPECT_EQ(r.receive(stranger), ReceiverTask::kNone);
  EXPECT_TRUE(r.answers.empty());
  EXPECT_EQ(r.membership.state(), ReceiverState::kWaiting);
  r.join();
  stranger.header.type = MrpType::kInstall;
  ++stranger.header.instance;
  EXPECT_EQ(r.receive(stranger), ReceiverTask::kNone);
  EXPECT_TRUE(r.answers.empty());
}

TEST(ReceiverMembership, HeedsTheProcessThatItAnsweredOnly) {
  Receiver r;
  r.join();
  SenderGroupMessage other = install();
  ++other.header.instance;
  EXPECT_EQ(r.receive(other), ReceiverTask::kNone);
  expect_reject(r.answers, MrpReject::kIdInUse, other);
  other.header.type = MrpType::kRemove;
  EXPECT_EQ(r.receive(other), ReceiverTask::kNone);
  EXPECT_EQ(r.membership.state(), ReceiverState::kActive);
  EXPECT_EQ(r.membership.installs_received(), 2u);
}

TEST(ReceiverMembership, FollowsItsSenderToANewerEpoch) {
  Receiver r;
  r.join();
  SenderGroupMessage newer = install(kShare, 7);
  newer.header.epoch = 2;
  EXPECT_EQ(r.receive(newer), ReceiverTask::kNone);
  expect_installed(r.answers, MrpType::kInstall, newer);
  EXPECT_EQ(r.membership.epoch(), 2);
  EXPECT_EQ(r.receive(install()), ReceiverTask::kNone);  // a late one
  EXPECT_TRUE(r.answers.empty());
}

// From a switch that does not receive the newer epoch.
TEST(ReceiverMembership, IsNotEndedByWhoForgetsAnOlderEpoch) {
  Receiver r;
  r.join();
  SenderGroupMessage newer = install(kShare, 7);
  newer.header.epoch = 2;
  r.receive(newer);
  EXPECT_EQ(r.receive(removal(MrpReject::kNone)), ReceiverTask::kNone);
  EXPECT_EQ(r.membership.state(), ReceiverState::kActive);
}

TEST(ReceiverMembership, KeepsTheVirtualQpnThatItSpeaksTo) {
  Receiver r;
  r.join();
  SenderGroupMessage other = install(kShare, 7);
  other.virtual_qpn = wire::Qpn(kVirtualQpn.value() + 1);
  EXPECT_EQ(r.receive(other), ReceiverTask::kNone);
  expect_reject(r.answers, MrpReject::kIdInUse, other);
}

TEST(ReceiverMembership, ReportsThatItsQueuePairDidNotComeUp) {
  Receiver r;
  r.receive(install());
  r.connected(false);
  expect_reject(r.answers, MrpReject::kMemberFailed, install());
  EXPECT_EQ(r.membership.state(), ReceiverState::kFailed);
  r.receive(install(kShare, 2));
  expect_reject(r.answers, MrpReject::kMemberFailed, install(kShare, 2));
}

TEST(ReceiverMembership, NotifiesItsSenderThatItLeftUntilItIsAnswered) {
  Receiver r;
  r.join();
  Outbox out;
  r.membership.leave(out);
  expect_reject(out.of_sender_groups, MrpReject::kMemberFailed, install(0, 2));
  r.receive(install(0, 3));
  expect_reject(r.answers, MrpReject::kMemberFailed, install(0, 3));
  EXPECT_EQ(r.receive(removal(MrpReject::kMemberFailed)), ReceiverTask::kNone);
  expect_installed(r.answers, MrpType::kRemove, removal(MrpReject::kMemberFailed));
}

TEST(ReceiverMembership, EndsOnRemoveAndAnswersItEachTime) {
  for (const auto why : {MrpReject::kNone, MrpReject::kEvicted}) {
    Receiver r;
    r.join();
    EXPECT_EQ(r.receive(removal(why)), ReceiverTask::kEnded);
    expect_installed(r.answers, MrpType::kRemove, removal(why));
    EXPECT_EQ(r.membership.state(), ReceiverState::kGone);
    EXPECT_EQ(r.membership.reject_reason(), why);
    EXPECT_EQ(r.receive(removal(why)), ReceiverTask::kNone);
    expect_installed(r.answers, MrpType::kRemove, removal(why));
    r.receive(install());  // a late one
    expect_reject(r.answers, MrpReject::kNotMember, install());
  }
}

TEST(ReceiverMembership, FailsIfTheSenderGaveUpBeforeItWasActive) {
  for (const bool has_received : {false, true}) {
    Receiver r;
    if (has_received) {
      r.receive(install());
      r.connected(true);
    }
    EXPECT_EQ(r.receive(removal(MrpReject::kTableFull)), ReceiverTask::kEnded);
    EXPECT_EQ(r.membership.state(), ReceiverState::kFailed);
    EXPECT_EQ(r.membership.reject_reason(), MrpReject::kTableFull);
    EXPECT_EQ(r.membership.sender(), host(0));
  }
}

TEST(ReceiverMembership, BelievesASwitchThatItsSenderIsGoneUnlessTheSenderJustSent) {
  Receiver r;
  r.join();
  const SenderGroupMessage m = from_sender(MrpType::kRemove, 0);
  EXPECT_EQ(r.receive(m, kStart + 1s), ReceiverTask::kNone);
  EXPECT_EQ(r.receive(install(0, 3), kStart + 1s), ReceiverTask::kNone);
  EXPECT_EQ(r.receive(m, kStart + 1s + times::kSenderLives), ReceiverTask::kNone);
  EXPECT_EQ(r.membership.state(), ReceiverState::kActive);
  EXPECT_EQ(r.receive(m, kStart + 2500ms), ReceiverTask::kEnded);
  EXPECT_TRUE(r.answers.empty());
}

TEST(ReceiverMembership, OfNobodyIsRefusedAndItsEndConfirmed) {
  const auto answers = [](const SenderGroupMessage& m) {
    const auto answer = answer_of_nobody(m, member(1));
    return answer ? std::vector{*answer} : std::vector<SenderGroupMessage>{};
  };
  expect_reject(answers(install()), MrpReject::kNotMember, install());
  expect_installed(answers(removal(MrpReject::kNone)), MrpType::kRemove, removal(MrpReject::kNone));
  EXPECT_TRUE(answers(from_sender(MrpType::kRemove, 0)).empty());
}

}  // namespace
}  // namespace cepheus::mrp
