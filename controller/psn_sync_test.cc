#include "controller/psn_sync.h"

#include <gtest/gtest.h>

namespace cepheus::mrp {
namespace {

using Step = PsnSync::Step;

PsnSync enabled() {
  PsnSync sync;
  sync.enable();
  return sync;
}

// What is due once the queue pair has been stopped and drained.
Step due_after_drain(PsnSync& sync) {
  EXPECT_EQ(sync.due(0), Step::kStop);
  sync.stopped();
  EXPECT_EQ(sync.due(0), Step::kNone) << "something may still be under way in the device";
  EXPECT_FALSE(sync.may_send());
  sync.drained();
  EXPECT_FALSE(sync.may_send());
  return sync.due(0);
}

TEST(PsnSync, AsksForNothingWhereSwitchesRebase) {
  PsnSync sync;
  sync.received();
  sync.sent();
  EXPECT_TRUE(sync.may_send());
  sync.want_to_send();
  EXPECT_EQ(sync.due(0), Step::kNone);
}

TEST(PsnSync, LetsTheFirstSourceSendAtOnce) {
  const PsnSync sync = enabled();
  EXPECT_TRUE(sync.may_send());
  EXPECT_EQ(sync.due(0), Step::kNone);
}

TEST(PsnSync, MovesTheReceivePsnOnceAllIsAcknowledged) {
  PsnSync sync = enabled();
  sync.sent();
  EXPECT_EQ(sync.due(1), Step::kNone);
  EXPECT_EQ(due_after_drain(sync), Step::kReceivePsn);
  sync.done();
  EXPECT_EQ(sync.due(0), Step::kNone);
  EXPECT_TRUE(sync.may_send()) << "its send PSN is where it was";
}

TEST(PsnSync, MovesTheSendPsnOnlyForWhoWantsToSend) {
  PsnSync sync = enabled();
  sync.received();
  EXPECT_FALSE(sync.may_send());
  EXPECT_EQ(sync.due(0), Step::kNone) << "a mere receiver leaves its queue pair alone";
  sync.want_to_send();
  EXPECT_EQ(due_after_drain(sync), Step::kSendPsn);
  sync.done();
  EXPECT_TRUE(sync.may_send());
}

TEST(PsnSync, KnowsWhatHappenedBeforeItWasEnabled) {
  PsnSync sync;
  sync.received();
  sync.enable();
  EXPECT_FALSE(sync.may_send());
}

}  // namespace
}  // namespace cepheus::mrp
