#include "collectives/safeguard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/core/parameters.h"
#include "collectives/fakes/fake_job.h"

namespace cepheus::coll {
namespace {

using std::chrono::milliseconds;
using testing::Each;

class SafeguardStory : public testing::Test {
 protected:
  static constexpr int kRanks = 4;

  void SetUp() override {
    fake::use_small_sizes();
    parameters().safeguard_samples = 10;
  }

  // Groups are there, and no broadcast is timed yet that `bytes` are the size of.
  void set_up(fake::Job& job, std::size_t bytes, bool blocking = true) {
    broadcast(job, 1, bytes, milliseconds(0), blocking);
  }
  // Broadcasts of `bytes` from all ranks in turn. The fabric holds each back for `held`.
  void broadcast(fake::Job& job, int count, std::size_t bytes, milliseconds held,
                 bool blocking = true) {
    for (int i = 0; i < count; ++i) {
      job.begin_all(i % kRanks, bytes, blocking);
      job.fabric.disconnect(2);
      job.pass(held);
      job.fabric.reconnect();
      ASSERT_TRUE(job.run());
      ASSERT_THAT(job.results(), Each(Code::kDone));
      ASSERT_TRUE(job.all_have_data());
    }
  }
};

TEST_F(SafeguardStory, ASlowFabricServesNoLonger) {
  fake::Job job(kRanks);
  set_up(job, 200);
  broadcast(job, 9, 200, milliseconds(20));
  EXPECT_LE(job.comparisons(), 3u);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(job.route(rank), Route::kSaved);
  set_up(job, 1000);
  EXPECT_EQ(job.route(0), Route::kBulk) << "other sizes are judged by themselves";
}

TEST_F(SafeguardStory, NonBlockingBroadcastsGoDownTheTreeThen) {
  fake::Job job(kRanks);
  set_up(job, 200, false);
  broadcast(job, 9, 200, milliseconds(20), false);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(job.route(rank), Route::kTree);
  broadcast(job, 1, 200, milliseconds(20));
  EXPECT_EQ(job.route(0), Route::kEager) << "blocking ones are judged by themselves";
}

TEST_F(SafeguardStory, RanksThatShareHostsLeaveTogether) {
  fake::Job job(kRanks, 2);
  set_up(job, 1000);
  broadcast(job, 9, 1000, milliseconds(20));
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(job.route(rank), Route::kSaved);
}

TEST_F(SafeguardStory, AJobThatRequiresMulticastHasNone) {
  parameters().mode = static_cast<int>(Mode::kRequire);
  fake::Job job(kRanks);
  set_up(job, 200);
  for (int i = 0; i < 50; ++i) {
    broadcast(job, 1, 200, milliseconds(20));
    ASSERT_EQ(job.route(0), Route::kEager);
  }
  EXPECT_EQ(job.comparisons(), 0u);
}

// The group has failed, so the times of one way do not judge the other.
TEST_F(SafeguardStory, AFabricThatBreaksIsNotCalledSlow) {
  fake::Job job(kRanks);
  set_up(job, 200);
  job.fabric.outcomes = {MCAST_ERR_INVALID};
  job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
  broadcast(job, 1, 60, milliseconds(1));
  broadcast(job, 100, 200, milliseconds(1));
  EXPECT_EQ(job.comparisons(), 0u);
}

TEST_F(SafeguardStory, AFabricThatBreaksBetweenHostsIsNotCalledSlow) {
  fake::Job job(kRanks, 2);
  set_up(job, 200, false);
  EXPECT_EQ(job.route(0), Route::kHosts);
  job.fabric.outcomes = {MCAST_ERR_INVALID};
  job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
  broadcast(job, 1, 60, milliseconds(1), false);
  broadcast(job, 100, 200, milliseconds(1), false);
  EXPECT_EQ(job.comparisons(), 0u);
}

}  // namespace
}  // namespace cepheus::coll
