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
  EXPECT_FALSE(history.read(at(5), at(6), 0, first));
  EXPECT_FALSE(history.read(at(5), at(6), 1, second));
  EXPECT_TRUE(history.read(at(5), at(6), 1, first));
  EXPECT_FALSE(history.read(at(3), at(6), 1, first));  // began before it was acknowledged
}

TEST(History, FindsWhatWasNeverWritten) {
  History history(4);
  const auto value = history.begin_write(at(1), 0, 0, 1);
  EXPECT_TRUE(history.read(at(5), at(6), 1, value));
  EXPECT_TRUE(history.read(at(5), at(6), 0, value + 1));
}

// What was read once never changes back, though nobody acknowledged it.
TEST(History, RemembersWhatWasRead) {
  History history(4);
  const auto first = history.begin_write(at(1), 0, 0, 2);
  history.acknowledge(at(2), first);
  const auto second = history.begin_write(at(3), 0, 0, 2);
  EXPECT_FALSE(history.read(at(4), at(5), 0, second));
  EXPECT_TRUE(history.read(at(6), at(7), 0, first));
  EXPECT_FALSE(history.read(at(6), at(7), 1, first));  // a write may be in some blocks only
}

TEST(History, EndsWritesOfAWriterThatWasReplaced) {
  History history(1);
  history.serve(at(0), 0);
  const auto old = history.begin_write(at(1), 0, 0, 1);
  history.serve(at(2), 1);
  const auto young = history.begin_write(at(3), 1, 0, 1);
  history.acknowledge(at(4), young);
  EXPECT_TRUE(history.read(at(5), at(6), 0, old));
}

TEST(History, FlushedIsKeptThoughMemoryIsLost) {
  History history(2);
  const auto flushed = history.begin_write(at(1), 0, 0, 1);
  history.acknowledge(at(2), flushed);
  history.flushed(at(3));
  const auto lost = history.begin_write(at(4), 0, 0, 1);
  history.acknowledge(at(5), lost);
  history.lose_unflushed();
  EXPECT_FALSE(history.read(at(7), at(8), 0, flushed));
  EXPECT_TRUE(history.read(at(7), at(8), 0, 0));
}

}  // namespace
}  // namespace cepheus::replica::sim
