#include "collectives/core/agreement.h"

#include <gtest/gtest.h>

namespace cepheus::coll {
namespace {

using Kind = ControlMessage::Kind;
using Path = Agreement::Path;

TEST(Agreement, ARootThatKnowsOfTheFailureSwitchesOverAtItsNextUnit) {
  Actions out;
  Agreement root(0, 3, 7);
  root.fail(Cause::kDevice, "the port is gone");
  root.drained(false, out);
  EXPECT_TRUE(out.empty());
  root.enter(5, 0, 100, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].to, Action::kEveryone);
  EXPECT_EQ(out[0].message.kind, Kind::kSwitchOver);
  EXPECT_EQ(out[0].message.unit, 5u);
  EXPECT_EQ(out[0].message.generation, 7u);
  EXPECT_STREQ(out[0].message.reason, "the port is gone");
  EXPECT_EQ(root.path(), Path::kSaved);
  EXPECT_EQ(root.retry_at(), 105u);

  Agreement member(1, 3, 7);
  Actions none;
  member.enter(5, 0, 1, none);
  member.receive(0, out[0].message, none);
  EXPECT_EQ(member.path(), Path::kDrain);
  member.drained(false, none);
  EXPECT_EQ(member.path(), Path::kSaved);
  EXPECT_EQ(member.retry_at(), 105u);
  EXPECT_EQ(member.cause(), Cause::kDevice);
  EXPECT_TRUE(none.empty());
}

ControlMessage about(Kind kind, std::uint64_t unit, std::uint64_t value = 0) {
  return {kind, 1, unit, value, Cause::kWork, "disconnected"};
}

TEST(Agreement, ARootInItsUnitServesItUntilAllHaveAnswered) {
  Actions out;
  Agreement root(0, 3, 1);
  root.enter(4, 0, 10, out);
  root.mark_sent();
  root.fail(Cause::kWork, "failed");
  root.drained(true, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].to, Action::kEveryone);
  EXPECT_EQ(out[0].message.kind, Kind::kFailed);
  EXPECT_EQ(out[0].message.unit, 4u);
  EXPECT_EQ(out[0].message.value, 0u);
  EXPECT_EQ(root.path(), Path::kRepair);
  out.clear();
  root.receive(1, about(Kind::kHave, 4), out);
  root.receive(1, about(Kind::kHave, 4), out);  // doubled
  root.receive(2, about(Kind::kHave, 3), out);  // of another unit
  root.receive(3, about(Kind::kHave, 4), out);  // of no member
  EXPECT_FALSE(root.is_answered());
  root.receive(2, about(Kind::kLack, 4, 100), out);
  EXPECT_TRUE(root.is_answered());
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].kind, Action::Kind::kServeCurrent);
  EXPECT_EQ(out[0].to, 2);
  EXPECT_EQ(out[0].message.value, 100u);
}

TEST(Agreement, GivesUpOnce) {
  Agreement member(1, 2, 1);
  member.give_up(3, 50, "no group");
  EXPECT_TRUE(member.has_failed());
  EXPECT_EQ(member.reason(), "no group");
  member.give_up(4, 60, "again");
  EXPECT_EQ(member.switch_over(), 3u);
  EXPECT_EQ(member.retry_at(), 50u);
}

// A root and a member of a group of two.
class AgreementOfTwo : public testing::Test {
 protected:
  void root_sends() {
    root.enter(0, 0, 10, out);
    root.mark_sent();
  }
  void root_sends_and_leaves() {
    root_sends();
    root.leave(1, out);
  }
  void member_waits(std::chrono::milliseconds time) {
    for (const auto end = now + time; now < end; now += std::chrono::milliseconds(100))
      member.watch(now, out);
  }

  Actions out;
  Agreement root{0, 2, 1};
  Agreement member{1, 2, 1};
  Agreement::Time now{};
};

// The fabric has acknowledged a unit, and the root has returned without a copy.
TEST_F(AgreementOfTwo, AMemberIsNotifiedThatItsUnitIsGone) {
  member.enter(0, 0, 10, out);
  member.fail(Cause::kWork, "failed");
  member.drained(false, out);
  EXPECT_EQ(member.path(), Path::kRepair);
  root_sends_and_leaves();
  ASSERT_TRUE(out.empty());
  root.gone(1, 0, out);
  ASSERT_EQ(out.size(), 1u);
  const ControlMessage gone = out[0].message;
  EXPECT_EQ(out[0].to, 1);
  member.receive(0, gone, out);
  EXPECT_EQ(member.path(), Path::kRepair) << "it has not asked";
  member.lack(0, out);
  member.receive(0, gone, out);
  EXPECT_EQ(member.path(), Path::kGone);
  member.leave(1, out);
  member.enter(1, 0, 10, out);
  EXPECT_EQ(member.path(), Path::kRepair) << "the next unit is another matter";
}

// Data that was acknowledged and lost: no member sees a failure of the group.
TEST_F(AgreementOfTwo, AMemberThatWaitsForAUnitThatAllHaveFindsTheFailure) {
  root_sends();
  member.enter(0, 0, 10, out);
  const Agreement::Time start = now;
  member.watch(start, out);
  member.watch(start + Agreement::kRequest / 2, out);
  EXPECT_TRUE(out.empty());
  const auto send_request = [&](Agreement::Time at) {
    out.clear();
    member.watch(at, out);
    ASSERT_EQ(out.size(), 1u);
    const ControlMessage waiting = out[0].message;
    EXPECT_EQ(waiting.kind, Kind::kWaiting);
    out.clear();
    root.receive(1, waiting, out);
  };
  send_request(start + Agreement::kRequest);
  EXPECT_TRUE(out.empty()) << "the root is still inside";
  root.leave(1, out);
  for (int i = 1; i <= 2; ++i) {
    EXPECT_FALSE(member.has_failed());
    now = start + Agreement::kRequest + i * Agreement::kRequestAgain;
    send_request(now);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].kind, Action::Kind::kSendDelivered);
    Actions answer;
    root.deliver(1, 0, answer);
    member.receive(0, answer[0].message, out);
    member.watch(now, out);
  }
  EXPECT_TRUE(member.has_failed());
  EXPECT_EQ(member.cause(), Cause::kLost);
}

// A root outside MPI finds several questions in its queue and answers all at once. The member's NIC
// may still have the data.
TEST_F(AgreementOfTwo, AnswersThatComeTogetherCountOnce) {
  root_sends_and_leaves();
  member.enter(0, 0, 10, out);
  member.watch(now, out);
  now += Agreement::kRequest;
  member.watch(now, out);
  member.watch(now += Agreement::kRequestAgain, out);
  ASSERT_EQ(out.size(), 2u) << "asks again";
  Actions answers;
  for (std::size_t i = 0; i < 2; ++i) root.deliver(1, 0, answers);
  for (const Action& answer : answers) member.receive(0, answer.message, out);
  EXPECT_FALSE(member.has_failed());
  member.watch(now, out);
  member.watch(now += Agreement::kRequestAgain, out);
  ASSERT_EQ(out.size(), 3u);
  member.receive(0, answers[0].message, out);
  EXPECT_TRUE(member.has_failed());
}

// Questions pile up at a root that computes outside MPI. Once it answers, the member finds out
// soon.
TEST_F(AgreementOfTwo, AMemberSendsWaitingLessOftenWhileNothingAnswers) {
  root_sends_and_leaves();
  member.enter(0, 0, 10, out);
  const auto wait = [&](std::chrono::milliseconds time) {
    out.clear();
    member_waits(time);
  };
  wait(std::chrono::minutes(1));
  EXPECT_EQ(out.size(), 5u) << "after 4, 6, 10, 18 and 34 seconds";
  wait(std::chrono::hours(1));
  EXPECT_LT(out.size(), 60u);
  EXPECT_GT(out.size(), 50u) << "the root may have answered none of them yet";
  Actions answer;
  root.deliver(1, 0, answer);
  member.receive(0, answer[0].message, out);
  wait(Agreement::kRequestAgain);
  EXPECT_TRUE(out.empty()) << "the NIC may still hand over the data";
  wait(std::chrono::milliseconds(100));
  ASSERT_EQ(out.size(), 1u);
  member.receive(0, answer[0].message, out);
  EXPECT_TRUE(member.has_failed());
}

// The next unit begins anew.
TEST_F(AgreementOfTwo, AMemberSendsWaitingSoonInEachUnit) {
  for (std::uint64_t unit = 0; unit < 3; ++unit) {
    member.enter(unit, 0, 10, out);
    member_waits(Agreement::kRequest + Agreement::kRequestAgain + std::chrono::milliseconds(100));
    member.leave(unit + 1, out);
    EXPECT_EQ(out.size(), 2 * (unit + 1));
  }
}

TEST_F(AgreementOfTwo, AMemberThatWaitsLearnsThatTheGroupBrokeAtItsRoot) {
  root_sends_and_leaves();
  root.fail(Cause::kDevice, "no port");
  root.drained(false, out);
  member.enter(0, 0, 10, out);
  member.watch({}, out);
  ASSERT_TRUE(out.empty());
  member.watch(Agreement::Time{} + Agreement::kRequest, out);
  ASSERT_EQ(out.size(), 1u);
  const ControlMessage waiting = out[0].message;
  out.clear();
  root.receive(1, waiting, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].message.value, 0u);
  member.receive(0, out[0].message, out);
  EXPECT_TRUE(member.has_failed());
}

TEST_F(AgreementOfTwo, AMemberThatLacksAUnitIsServedOnlyOnceTheRootHasDrained) {
  root_sends_and_leaves();
  member.enter(0, 0, 10, out);
  member.fail(Cause::kDevice, "no port");
  member.drained(false, out);
  member.lack(0, out);
  member.lack(0, out);
  ASSERT_EQ(out.size(), 1u) << "asks once";
  const ControlMessage lack = out[0].message;
  out.clear();
  root.receive(1, lack, out);
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(root.has_failed());
  root.drained(true, out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].message.kind, Kind::kFailed);
  EXPECT_EQ(out[1].kind, Action::Kind::kServeStored);
  EXPECT_EQ(out[1].to, 1);
}

}  // namespace
}  // namespace cepheus::coll
