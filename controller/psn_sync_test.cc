#include "controller/psn_sync.h"

#include <gtest/gtest.h>

#include "wire/types.h"

namespace cepheus::mrp {
namespace {

using Step = PsnSync::Step;

PsnSync enabled() {
  PsnSync sync;
  sync.enable();
  return sync;
}

// The next step once the queue pair has been stopped and drained.
Step due_after_drain(PsnSync& sync) {
  EXPECT_EQ(sync.due(0), Step::kStop);
  sync.stopped();
  EXPECT_EQ(sync.due(0), Step::kNone) << "something may still be under way in the device";
  EXPECT_FALSE(sync.may_send(1));
  sync.drained();
  EXPECT_FALSE(sync.may_send(1));
  return sync.due(0);
}

TEST(PsnSync, NeedsNoStepWhereSwitchesRebase) {
  PsnSync sync;
  sync.received();
  sync.sent(1);
  EXPECT_TRUE(sync.may_send(1));
  sync.want_to_send();
  EXPECT_EQ(sync.due(0), Step::kNone);
}

TEST(PsnSync, LetsTheFirstSourceSendAtOnce) {
  const PsnSync sync = enabled();
  EXPECT_TRUE(sync.may_send(1));
  EXPECT_EQ(sync.due(0), Step::kNone);
}

TEST(PsnSync, MovesTheReceivePsnOnceAllIsAcknowledged) {
  PsnSync sync = enabled();
  sync.sent(1);
  EXPECT_EQ(sync.due(1), Step::kNone);
  EXPECT_EQ(due_after_drain(sync), Step::kReceivePsn);
  sync.done();
  EXPECT_EQ(sync.due(0), Step::kNone);
  EXPECT_TRUE(sync.may_send(1)) << "its send PSN is where it was";
}

TEST(PsnSync, MovesTheSendPsnOnlyForWhoWantsToSend) {
  PsnSync sync = enabled();
  sync.received();
  EXPECT_FALSE(sync.may_send(1));
  EXPECT_EQ(sync.due(0), Step::kNone) << "a mere receiver leaves its queue pair alone";
  sync.want_to_send();
  EXPECT_EQ(due_after_drain(sync), Step::kSendPsn);
  sync.done();
  EXPECT_TRUE(sync.may_send(1));
}

TEST(PsnSync, MovesTheReceivePsnOfASourceThatNeverPauses) {
  PsnSync sync = enabled();
  for (int turn = 0; turn < 3; ++turn) {
    sync.sent(PsnSync::kMostSent - 2);
    EXPECT_TRUE(sync.may_send(2));
    EXPECT_FALSE(sync.may_send(3)) << "the next source's packets would pass for old duplicates";
    sync.sent(2);
    EXPECT_FALSE(sync.may_send(1));
    sync.want_to_send();
    EXPECT_EQ(sync.due(1), Step::kNone) << "what is under way ends first";
    EXPECT_EQ(due_after_drain(sync), Step::kReceivePsn);
    sync.done();
    EXPECT_TRUE(sync.may_send(PsnSync::kMostSent));
  }
}

TEST(PsnSync, CountsNothingWhereSwitchesRebase) {
  PsnSync sync;
  sync.sent(std::uint64_t{1} << 40);
  EXPECT_TRUE(sync.may_send(PsnSync::kMostSent + 1));
}

// The farthest that a source's receive PSN can lie behind the next source's last packet.
TEST(PsnSync, KeepsTheNextSourcesPacketsInFrontOfTheReceivePsn) {
  constexpr std::int64_t kMostUnderWay = 1 << 22;
  const wire::Psn expected(0xFFFFF0);
  const wire::Psn first = expected + static_cast<std::int64_t>(PsnSync::kMostSent);
  EXPECT_TRUE(after(first, expected));
  EXPECT_TRUE(after(first + (kMostUnderWay - 1), expected));
  EXPECT_FALSE(after(first + kMostUnderWay, expected)) << "there is no more room than that";
}

// Only before its turn: later its own packets make the difference.
TEST(PsnSync, LooksAtThePsnsBeforeTheFirstSendOfATurn) {
  EXPECT_FALSE(PsnSync().has_to_look()) << "switches rebase";
  PsnSync sync = enabled();
  EXPECT_TRUE(sync.has_to_look());
  sync.sent(1);
  EXPECT_FALSE(sync.has_to_look());
  EXPECT_EQ(due_after_drain(sync), Step::kReceivePsn);
  EXPECT_FALSE(sync.has_to_look());
  sync.done();
  EXPECT_TRUE(sync.has_to_look());
  sync.received();
  EXPECT_FALSE(sync.has_to_look()) << "it is known";
}

TEST(PsnSync, KnowsWhatHappenedBeforeItWasEnabled) {
  PsnSync sync;
  sync.received();
  sync.enable();
  EXPECT_FALSE(sync.may_send(1));
}

}  // namespace
}  // namespace cepheus::mrp
