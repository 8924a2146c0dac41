#include "replica/sim/history.h"

#include <gtest/gtest.h>

namespace cepheus::replica::sim {
namespace {

Instant at(int us) { return Instant{std::chrono::microseconds(us)}; }

TEST(History, LosesNoAcknowledgedWrite) {
  History history(4);
  const auto first = history.begin_write(at(1), 0, 0, 2);
  history.acknowledge(at(2), first);
  const auto second = history.begin_write(at(3), 0, 1, 1);
  history.acknowledge(at(4), second);
  EXPECT_FALSE(history.read({at(5), at(6), at(6)}, 9, 0, first));
  EXPECT_FALSE(history.read({at(5), at(6), at(6)}, 9, 1, second));
  EXPECT_TRUE(history.read({at(5), at(6), at(6)}, 9, 1, first));
  EXPECT_FALSE(
      history.read({at(3), at(6), at(6)}, 9, 1, first));  // began before it was acknowledged
}

TEST(History, FindsAValueThatWasNeverWritten) {
  History history(4);
  const auto value = history.begin_write(at(1), 0, 0, 1);
  EXPECT_TRUE(history.read({at(5), at(6), at(6)}, 9, 1, value));
  EXPECT_TRUE(history.read({at(5), at(6), at(6)}, 9, 0, value + 1));
}

// A value that was read never changes back, even without an acknowledgement.
TEST(History, RemembersReadValues) {
  History history(4);
  const auto first = history.begin_write(at(1), 0, 0, 2);
  history.acknowledge(at(2), first);
  const auto second = history.begin_write(at(3), 0, 0, 2);
  EXPECT_FALSE(history.read({at(4), at(5), at(5)}, 9, 0, second));
  EXPECT_TRUE(history.read({at(6), at(7), at(7)}, 9, 0, first));
  EXPECT_FALSE(
      history.read({at(6), at(7), at(7)}, 9, 1, first));  // a write may be in some blocks only
}

// Either of two overlapping writes may be the last one, until a read finds one of them after the
// other has ended.
TEST(History, OverlappingWritesKeepTheOrderInWhichTheyWereRead) {
  History history(1);
  const auto first = history.begin_write(at(1), 0, 0, 1);
  const auto second = history.begin_write(at(2), 0, 0, 1);
  EXPECT_FALSE(history.read({at(3), at(4), at(4)}, 0, 0, second));
  history.acknowledge(at(5), first);
  EXPECT_FALSE(history.read({at(6), at(7), at(7)}, 0, 0, first)) << "it may have come after";
  EXPECT_TRUE(history.read({at(8), at(9), at(9)}, 1, 0, 0));
}

TEST(History, AValueThatWasReadDoesNotChangeBackToOneOfAnOverlappingWrite) {
  History history(1);
  const auto first = history.begin_write(at(1), 0, 0, 1);
  const auto second = history.begin_write(at(2), 0, 0, 1);
  history.acknowledge(at(3), first);
  EXPECT_FALSE(history.read({at(4), at(8), at(8)}, 0, 0, second));
  EXPECT_FALSE(history.read({at(5), at(6), at(6)}, 0, 0, first)) << "both reads are under way";
  EXPECT_FALSE(history.read({at(9), at(10), at(10)}, 0, 0, second));
  EXPECT_TRUE(history.read({at(11), at(12), at(12)}, 0, 0, first));
}

// The order on disk may be another one, as long as no flush followed the later reading.
TEST(History, AReadingThatWasLostShowsNoOrder) {
  History history(1);
  history.serve(at(0), 0, {1, 0});
  const auto first = history.begin_write(at(1), 0, 0, 1);
  const auto second = history.begin_write(at(2), 0, 0, 1);
  EXPECT_FALSE(history.read({at(3), at(4), at(4)}, 0, 0, second));
  history.flushed(at(5), 0);
  history.acknowledge(at(6), first);
  EXPECT_FALSE(history.read({at(7), at(8), at(8)}, 0, 0, second));
  history.lose_unflushed(at(9));
  history.serve(at(10), 1, {2, 0});
  EXPECT_FALSE(history.read({at(11), at(12), at(12)}, 1, 0, first));
  EXPECT_TRUE(history.read({at(11), at(12), at(12)}, 1, 0, 0)) << "one of both is on disk";
}

TEST(History, EndsWritesOfAWriterThatWasReplaced) {
  History history(1);
  history.serve(at(0), 0, {1, 0});
  const auto old = history.begin_write(at(1), 0, 0, 1);
  history.serve(at(2), 1, {2, 1});
  const auto young = history.begin_write(at(3), 1, 0, 1);
  history.acknowledge(at(4), young);
  EXPECT_TRUE(history.read({at(5), at(6), at(6)}, 9, 0, old));
}

TEST(History, EndsNothingForAWriterThatWasStoppedAndServesByAnOldClaim) {
  History history(4);
  history.serve(at(0), 1, {2, 1});
  const auto first = history.begin_write(at(1), 1, 0, 1);
  history.serve(at(2), 0, {1, 0});
  const auto second = history.begin_write(at(3), 1, 0, 1);
  history.acknowledge(at(4), second);
  EXPECT_FALSE(history.read({at(5), at(6), at(6)}, 9, 0, first)) << "either may be the last one";
  const auto stale = history.begin_write(at(7), 0, 1, 1);
  const auto third = history.begin_write(at(8), 1, 1, 1);
  history.acknowledge(at(9), third);
  EXPECT_TRUE(history.read({at(10), at(11), at(11)}, 9, 1, stale)) << "it is fenced";
}

TEST(History, FlushedDataSurvivesALossOfMemory) {
  History history(2);
  const auto flushed = history.begin_write(at(1), 0, 0, 1);
  history.acknowledge(at(2), flushed);
  history.flushed(at(3), 0);
  const auto lost = history.begin_write(at(4), 0, 0, 1);
  history.acknowledge(at(5), lost);
  history.lose_unflushed(at(6));
  EXPECT_FALSE(history.read({at(7), at(8), at(8)}, 9, 0, flushed));
  EXPECT_TRUE(history.read({at(7), at(8), at(8)}, 9, 0, 0));
}

TEST(History, AWriteWithFuaIsOnDisksWhenItIsAcknowledged) {
  History history(1);
  const auto write = history.begin_write(at(1), 0, 0, 1);
  history.acknowledge(at(2), write, true);
  history.lose_unflushed(at(3));
  EXPECT_TRUE(history.read({at(4), at(5), at(5)}, 9, 0, 0));
}

// The loss excuses a later writer's reads, but not those of one that continues as before.
TEST(History, AWriterThatServesOnAfterALossPromisesThatNothingIsLost) {
  History history(1);
  history.serve(at(1), 0, {1, 0});
  const auto write = history.begin_write(at(2), 0, 0, 1);
  history.acknowledge(at(3), write);
  history.lose_unflushed(at(4));
  EXPECT_FALSE(history.read({at(5), at(6), at(6)}, 1, 0, 0));
  history.resume(0);
  EXPECT_TRUE(history.read({at(7), at(8), at(8)}, 0, 0, 0));
}

// Acknowledged only after the loss: it must have been sent again.
TEST(History, ALossExcusesNothingThatIsAcknowledgedByAWriterThatKnowsOfIt) {
  History history(1);
  history.serve(at(1), 0, {1, 0});
  const auto write = history.begin_write(at(2), 0, 0, 1);
  history.lose_unflushed(at(3));
  history.resume(0);
  history.acknowledge(at(4), write);
  EXPECT_TRUE(history.read({at(5), at(6), at(6)}, 1, 0, 0));
}

TEST(History, HalfABlockMayBeReadOnlyAfterAllInSyncWereKilled) {
  History history(1);
  history.serve(at(1), 0, {1, 0});
  const auto torn = history.tear(history.begin_write(at(2), 0, 0, 1));
  EXPECT_TRUE(history.read({at(3), at(4), at(4)}, 1, 0, torn));
  history.excuse_torn();
  EXPECT_FALSE(history.read({at(3), at(4), at(4)}, 1, 0, torn));
  EXPECT_TRUE(history.read({at(3), at(4), at(4)}, 0, 0, torn)) << "its writer sends it again";
}

}  // namespace
}  // namespace cepheus::replica::sim
