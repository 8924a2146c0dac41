// Broadcasts on the same communicator share their state, so that none allocates.
#include <gtest/gtest.h>

#include "collectives/communicator_state.h"
#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fake_job.h"
#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll {
namespace {

struct Kind {
  std::size_t bytes;
  bool blocking;
  int ranks_per_host;
};

class Allocation : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { fake::use_small_sizes(); }

  // `count` broadcasts from each rank in turn.
  void broadcast(fake::Job& job, int count) {
    for (int i = 0; i < count; ++i) {
      job.begin_all(i % kRanks, GetParam().bytes, GetParam().blocking);
      ASSERT_TRUE(job.run());
      ASSERT_TRUE(job.all_have_data());
    }
  }
  static constexpr int kRanks = 4;
};

TEST_P(Allocation, IsNotPartOfABroadcastOnceTheFirstOnesAreDone) {
  constexpr int kWarmUp = 20, kCounted = 100;
  fake::Job job(kRanks, GetParam().ranks_per_host);
  broadcast(job, kWarmUp);
  const std::size_t before = fake::allocations();
  EXPECT_GT(before, 0u) << "setting groups up is counted";
  broadcast(job, kCounted);
  EXPECT_EQ(fake::allocations() - before, 0u);
}

// The small ones' lane, the large ones' in one unit and in three, and down the hosts' trees.
INSTANTIATE_TEST_SUITE_P(Kinds, Allocation,
                         testing::Values(Kind{10, true, 1}, Kind{200, true, 1}, Kind{300, true, 1},
                                         Kind{1000, true, 1}, Kind{200, false, 1},
                                         Kind{1000, false, 1}, Kind{200, true, 2},
                                         Kind{1000, true, 2}, Kind{1000, false, 2}));

class AllocationWithASafeguard : public Allocation {};

// Ways are compared, and changed.
TEST_P(AllocationWithASafeguard, IsNotPartOfABroadcastEither) {
  constexpr int kWarmUp = 200, kCounted = 400;
  fake::use_safeguard();
  fake::Job job(kRanks, GetParam().ranks_per_host);
  broadcast(job, kWarmUp);
  const std::size_t before = fake::allocations(), comparisons = job.comparisons();
  EXPECT_GT(comparisons, 0u);
  broadcast(job, kCounted);
  EXPECT_EQ(fake::allocations() - before, 0u);
  EXPECT_GT(job.comparisons(), comparisons);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AllocationWithASafeguard,
                         testing::Values(Kind{200, true, 1}, Kind{1000, true, 1},
                                         Kind{200, false, 1}, Kind{1000, true, 2},
                                         Kind{1000, false, 2}));

class AllocationWithoutAFabric : public Allocation {};

// The group has been refused for good, so every broadcast goes down the tree.
TEST_P(AllocationWithoutAFabric, IsNotPartOfABroadcastEither) {
  constexpr int kWarmUp = 20, kCounted = 100;
  fake::Job job(kRanks);
  job.fabric.outcomes = {MCAST_ERR_INVALID};
  broadcast(job, kWarmUp);
  ASSERT_EQ(job.route(0), Route::kTree);
  const std::size_t before = fake::allocations();
  broadcast(job, kCounted);
  EXPECT_EQ(fake::allocations() - before, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AllocationWithoutAFabric,
                         testing::Values(Kind{200, false, 1}, Kind{1000, false, 1}));

// The host's own reductions pass by on each machine without a fabric.
TEST(AllocationOnOneHost, IsNotPartOfAReductionThatTheHostServes) {
  constexpr int kRanks = 4, kCounted = 100;
  fake::use_small_sizes();
  parameters().ranks_per_host = kRanks;
  fake::Mpi mpi(kRanks);
  CommunicatorState state(mpi.communicator(0));
  const ReductionShape sum{Collective::kAllreduce, 8};
  const auto saved = [] {
    return counters().reductions()[static_cast<std::size_t>(Collective::kAllreduce)]
                                  [static_cast<std::size_t>(Counters::ReductionWay::kSaved)];
  };
  const auto call = [&] {
    const fake::Counting is_counted(true);
    EXPECT_FALSE(state.may_serve(sum));
    state.count_saved(sum, true, CallReport::begin_call());
    const auto counted = saved();
    EXPECT_TRUE(state.count_if_unserved(Collective::kAllreduce, true));
    EXPECT_EQ(saved(), counted + 1);
  };
  call();  // opens the report
  const std::size_t before = fake::allocations();
  for (int i = 0; i < kCounted; ++i) call();
  EXPECT_EQ(fake::allocations() - before, 0u);
}

}  // namespace
}  // namespace cepheus::coll
