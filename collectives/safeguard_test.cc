#include "collectives/safeguard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collectives/fakes/safeguard_story.h"

namespace cepheus::coll {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::Ne;
using testing::StartsWith;

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

// --- Reductions. Each has the right bits whatever its way is.

TEST_F(SafeguardStory, ASlowNetworkReducesNoLonger) {
  for (const Collective collective : {Collective::kAllreduce, Collective::kReduce}) {
    fake::Job job(kRanks);
    reduce_slowly(job, {collective, 8});
    expect_route(job, Route::kMessages);
    EXPECT_THAT(job.reason(1), StartsWith("faster than the network for these sizes"));
    reduce(job, 1, {collective, 9}, milliseconds(0));
    expect_route(job, Route::kNetwork);
    EXPECT_TRUE(job.close());
  }
}

// The saved function moves the same bytes. Job expects all ranks there in the same calls.
TEST_F(SafeguardStory, ABarrierAndAGatherGoToTheSavedFunctionThen) {
  for (const ReductionShape& shape : {kBarrier, kGather}) {
    fake::Job job(kRanks);
    reduce_slowly(job, shape);
    expect_route(job, Route::kSaved);
    EXPECT_TRUE(job.close());
  }
}

TEST_F(SafeguardStory, NonBlockingOnesGoByMessagesThen) {
  for (const ReductionShape& shape : {kBarrier, kGather, kSum}) {
    fake::Job job(kRanks);
    reduce_slowly(job, shape, false);
    expect_route(job, Route::kMessages);
    reduce(job, 1, shape, milliseconds(0));
    expect_route(job, Route::kNetwork);
    EXPECT_TRUE(job.close());
  }
}

TEST_F(SafeguardStory, EachCollectiveIsJudgedByItself) {
  fake::Job job(kRanks);
  set_up(job, 8);
  reduce_slowly(job, kSum);
  reduce(job, 1, kGather, milliseconds(0));
  expect_route(job, Route::kNetwork);
  reduce(job, 1, {Collective::kReduce, 8}, milliseconds(0));
  expect_route(job, Route::kNetwork);
  broadcast(job, 1, 8, milliseconds(0));
  EXPECT_EQ(job.route(0), Route::kEager);
  reduce(job, 1, kSum, milliseconds(0));
  expect_route(job, Route::kMessages);
}

TEST_F(SafeguardStory, TheNetworkReducesAgainOnceItIsFast) {
  fake::use_safeguard();
  fake::Job job(kRanks);
  reduce_slowly(job, kSum);
  EXPECT_THAT(job.reason(0), StartsWith("faster than the network"));
  int in_network = 0;  // fewer samples follow each other
  for (int i = 0; i < 2000 && in_network < 10; ++i) {
    reduce(job, 1, kSum, milliseconds(0));
    in_network = is_in_network(job) ? in_network + 1 : 0;
  }
  expect_route(job, Route::kNetwork);
}

TEST_F(SafeguardStory, RanksThatShareHostsReduceByTheOtherWayTogether) {
  fake::Job job(kRanks, 2);
  reduce(job, 1, kSum, milliseconds(0));
  expect_route(job, Route::kHosts);
  reduce_slowly(job, kSum);
  expect_route(job, Route::kMessages);
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_THAT(job.reason(rank), StartsWith("faster than the network")) << rank;
  reduce_slowly(job, kBarrier);
  expect_route(job, Route::kSaved);
  EXPECT_TRUE(job.close());
}

TEST_F(SafeguardStory, AGroupOfReductionsThatBreaksIsNotCalledSlow) {
  for (const int per_host : {1, 2}) {
    fake::Job job(kRanks, per_host);
    reduce(job, 1, kSum, milliseconds(0));
    job.fabric.outcomes = {MCAST_ERR_INVALID};
    job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
    reduce(job, 100, kSum, milliseconds(1));
    EXPECT_EQ(job.comparisons(), 0u);
  }
}

// A program reduces three times in each iteration, once behind uneven work.
TEST_F(SafeguardStory, LateRanksAreNotTheNetworksFault) {
  fake::Job job(kRanks);
  int samples = 0;
  for (int call = 0; call < 150; ++call) {
    const int late = call % 3 == 1 ? call / 3 % kRanks : -1;
    for (int rank = 0; rank < kRanks; ++rank)
      if (rank != late) job.reduce(rank, kSum);
    if (late >= 0) {
      job.pass(milliseconds(50));
      job.reduce(late, kSum);
    }
    ASSERT_TRUE(job.run());
    samples += is_in_network(job) ? 0 : 1;
  }
  EXPECT_GE(samples, 16);
  EXPECT_LT(samples, 60);
}

// Nor do the times of the other way count if the network does not take the data.
TEST_F(SafeguardStory, SumsTooLongForTheirGroupAreNotCompared) {
  fake::Job job(kRanks);
  job.fabric.reduction_bytes = 16;
  reduce(job, 100, kSum, milliseconds(0));
  EXPECT_EQ(job.comparisons(), 0u);
}

// No message reaches rank 1 for a while. The saved function takes a millisecond.
TEST_F(SafeguardStory, WithoutANetworkABarrierAndAGatherLeaveMessagesThatAreSlow) {
  for (const int per_host : {1, 2}) {
    for (const ReductionShape& shape : {kBarrier, kGather}) {
      fake::Job job(kRanks, per_host);
      job.fabric.outcomes = {MCAST_ERR_INVALID};
      for (int call = 0; call < 4 * 18; ++call) {
        job.reduce_all(shape);
        job.unheard = call > 0 ? 1 : -1;
        job.pass(milliseconds(20));
        job.unheard = -1;
        ASSERT_TRUE(job.run());
        ASSERT_TRUE(job.all_have_results());
      }
      EXPECT_GT(job.comparisons(), 0u);
      expect_route(job, Route::kSaved);
      EXPECT_THAT(job.reason(2), StartsWith("faster than messages between ranks"));
      EXPECT_TRUE(job.close());
    }
  }
}

// ... as one in the network does. The sixth call is the first sample.
TEST_F(SafeguardStory, ARankWithoutItsDataEndsASampleInErrorsOnAllRanks) {
  for (const int per_host : {1, 2}) {
    for (int failing = 0; failing < kRanks; ++failing) {
      fake::Job job(kRanks, per_host);
      reduce(job, 5, kSum, milliseconds(0));
      for (int rank = 0; rank < kRanks; ++rank)
        job.reduce(rank, kSum, rank == failing ? Code::kNoMemory : Code::kDone);
      ASSERT_TRUE(job.run()) << failing << " of " << per_host << " a host";
      EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
      for (int calls = 0; calls < 10; ++calls) {  // samples, then in the network
        job.reduce_all(kSum);
        ASSERT_TRUE(job.run()) << failing;
        EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
      }
      ASSERT_TRUE(job.close());
      EXPECT_EQ(job.mpi.receives(), 0u);
    }
  }
}

// Else all ranks would wait in the saved function for one that has failed to agree.
TEST_F(SafeguardStory, ACallBehindAnAgreementIsOurOwn) {
  for (const ReductionShape& shape : {kBarrier, kGather}) {
    fake::Job job(kRanks);
    reduce_slowly(job, shape);
    int confirmed = 0;
    for (int calls = 0; calls < 200; ++calls) {
      reduce(job, 1, shape, milliseconds(0));
      if (!job.reason(0).starts_with("all ranks have agreed")) continue;
      ++confirmed;
      expect_route(job, Route::kMessages);
    }
    EXPECT_GT(confirmed, 0);
    EXPECT_TRUE(job.close());
  }
}

}  // namespace
}  // namespace cepheus::coll
