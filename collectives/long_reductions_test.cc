// Reductions of more data than a gather takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "collectives/fakes/reduction_story.h"
#include "collectives/long_reducer.h"

namespace cepheus::coll {
namespace {

using testing::Each;
using testing::Ne;

class LongReductions : public LongReductionStory {
 protected:
  static constexpr ReductionShape kLong{Collective::kAllreduce, 200};
};

TEST_F(LongReductions, HaveTheBitsOfShortOnes) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    for (const int per_host : {1, 2, 3}) {
      fake::Job job(ranks, per_host);
      for (const std::size_t bytes : {33u, 200u, 333u}) {
        expect_right(job, ranks, {Collective::kAllreduce, bytes}, Route::kMessages);
        expect_right(job, ranks, {Collective::kReduce, bytes, ranks / 2}, Route::kMessages);
      }
      ASSERT_TRUE(job.close());
      EXPECT_EQ(job.mpi.receives(), 0u);
    }
  }
}

// ... by the network, in pairs by rank, or by messages if ranks share hosts.
TEST_F(LongReductions, OfFloatsToo) {
  for (const int per_host : {1, 2}) {
    fake::Job job(6, per_host);
    job.library = arithmetic::Combiner::find(arithmetic::Operation::kSum, arithmetic::Type::kFloat);
    const Route route = per_host == 1 ? Route::kNetwork : Route::kMessages;
    for (const std::size_t bytes : {64u, 400u, 1000u}) {
      expect_right(job, 6, {Collective::kAllreduce, bytes, 0, false, sizeof(float)}, route);
      expect_right(job, 6, {Collective::kReduce, bytes, 5, false, sizeof(float)}, route);
    }
    ASSERT_TRUE(job.close());
  }
}

// By the network in parts, if arithmetic/ has the operation and each rank has a host of its own.
class NetworkedReductions : public LongReductions {
 protected:
  static constexpr ReductionShape kIntegers{Collective::kAllreduce, 3004, 0, false, 4};

  static arithmetic::Combiner sum() {
    return *arithmetic::Combiner::find(arithmetic::Operation::kSum, arithmetic::Type::kInt32);
  }
};

TEST_F(NetworkedReductions, OfIntegersGoByTheNetwork) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    fake::Job job(ranks);
    job.library = sum();
    for (const std::size_t bytes : {68u, 400u, 404u, 3004u, 20000u}) {
      expect_right(job, ranks, {Collective::kAllreduce, bytes, 0, false, 4}, Route::kNetwork);
      expect_right(job, ranks, {Collective::kReduce, bytes, ranks - 1, false, 4}, Route::kNetwork);
      expect_right(job, ranks, kBarrier, Route::kNetwork);
    }
    ASSERT_TRUE(job.close());
    EXPECT_EQ(job.fabric.groups(), 0u);
  }
}

TEST_F(NetworkedReductions, OfSeveralRanksAHostGoByMessages) {
  fake::Job job(4, 2);
  job.library = sum();
  expect_right(job, 4, kIntegers, Route::kMessages);
  EXPECT_EQ(job.reason(0), "some ranks share a host, and long reductions go by messages then");
}

TEST_F(NetworkedReductions, WithoutAGroupGoByMessages) {
  fake::Job job(3);
  job.fabric.outcomes = {MCAST_ERR_INVALID};
  job.library = sum();
  expect_right(job, 3, kIntegers, Route::kMessages);
  expect_right(job, 3, kIntegers, Route::kMessages);
}

// In each moment of it, and at each rank. Parts that are complete at some rank are copied, and messages
// reduce the others. In place, so the inputs of complete parts are gone.
TEST_F(NetworkedReductions, HaveTheSameBitsIfTheGroupFails) {
  const auto before = repaired();
  std::size_t by_messages = 0;
  for (unsigned moment = 0; moment < 60; ++moment) {
    for (int failing = 0; failing < 3; ++failing) {
      fake::Job job(3);
      job.library = sum();
      ASSERT_NO_FATAL_FAILURE(expect_right_behind_a_failure(job, 3, kIntegers, moment, failing));
      if (job.route(0) == Route::kMessages) ++by_messages;
      for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(job.route(rank), job.route(0)) << moment;
      expect_right(job, 3, kIntegers, Route::kMessages);
      ASSERT_TRUE(job.close());
      EXPECT_EQ(job.mpi.receives(), 0u);
    }
  }
  EXPECT_GT(repaired(), before + 100) << "parts are copied";
  EXPECT_GT(by_messages, 20u);
}

// Short ones before and after it go by the network, and wait for their turns.
TEST_F(LongReductions, KeepTheOrderOfCalls) {
  fake::Job job(4);
  for (int calls = 0; calls < 5; ++calls) {
    expect_right(job, 4, kSum, Route::kNetwork);
    expect_right(job, 4, kLong, Route::kMessages);
    expect_right(job, 4, kBarrier, Route::kNetwork);
  }
  ASSERT_TRUE(job.close());
}

// All later ones do. Broadcasts go on; short ones do, too, if ranks share hosts.
TEST_F(LongReductions, OfARankWhoseDataCantBeReadEndInErrorsEverywhere) {
  for (const int per_host : {1, 3}) {
    for (int failing = 0; failing < 6; ++failing) {
      fake::Job job(6, per_host);
      expect_right(job, 6, kLong, Route::kMessages);
      for (int rank = 0; rank < 6; ++rank)
        job.reduce(rank, kLong, rank == failing ? Code::kNoMemory : Code::kDone);
      ASSERT_TRUE(job.run()) << failing;
      EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
      EXPECT_EQ(job.result(failing), Code::kNoMemory);
      EXPECT_EQ(job.mpi.errors.size(), 6u);
      const bool share_hosts = per_host > 1;
      for (int calls = 0; calls < 3; ++calls) {
        job.reduce_all(kLong);
        ASSERT_TRUE(job.run()) << failing;
        EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
        job.reduce_all({Collective::kReduce, 200, calls});
        ASSERT_TRUE(job.run()) << failing;
        EXPECT_NE(job.result(calls), Code::kDone) << failing;
        job.reduce_all(kSum);
        ASSERT_TRUE(job.run()) << failing;
        for (const Code each : job.results()) EXPECT_EQ(each == Code::kDone, share_hosts);
      }
      EXPECT_EQ(job.mpi.errors.size(), 6u) << "each rank logs one reason";
      job.begin_all(failing, 100);
      ASSERT_TRUE(job.run()) << failing;
      EXPECT_TRUE(job.all_have_data());
      ASSERT_TRUE(job.close());
      EXPECT_EQ(job.mpi.receives(), 0u);
    }
  }
}

TEST_F(LongReductions, OfARankWithAnotherCountEndInErrorsEverywhere) {
  for (int failing = 0; failing < 5; ++failing) {
    fake::Job job(5);
    for (int rank = 0; rank < 5; ++rank)
      job.reduce(rank, {Collective::kAllreduce, rank == failing ? 150u : 200u});
    ASSERT_TRUE(job.run()) << failing;
    EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
    ASSERT_TRUE(job.close());
  }
}

}  // namespace
}  // namespace cepheus::coll
