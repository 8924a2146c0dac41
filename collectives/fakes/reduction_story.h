// Reductions on all ranks of a job, right or behind a failure.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_job.h"

namespace cepheus::coll {

class ReductionStory : public testing::Test {
 protected:
  static constexpr ReductionShape kBarrier{Collective::kBarrier, 0};
  static constexpr ReductionShape kSum{Collective::kAllreduce, 8};

  void SetUp() override { fake::use_small_sizes(); }

  // Runs one on all ranks, and expects it right everywhere, by `route`.
  static void expect_right(fake::Job& job, int ranks, const ReductionShape& shape, Route route) {
    job.reduce_all(shape);
    ASSERT_TRUE(job.run()) << name(shape.collective) << " of " << shape.block << " bytes";
    ASSERT_THAT(job.results(), testing::Each(Code::kDone));
    EXPECT_TRUE(job.all_have_results()) << name(shape.collective) << ", " << shape.block;
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(job.route(rank), route) << rank;
  }
  static void expect_all_right(fake::Job& job, int ranks, Route route) {
    expect_right(job, ranks, kBarrier, route);
    for (const std::size_t bytes : {1u, 7u, 8u, 30u}) {
      expect_right(job, ranks, {Collective::kAllreduce, bytes}, route);
      expect_right(job, ranks, {Collective::kReduce, bytes, ranks / 2}, route);
      expect_right(job, ranks, {Collective::kAllgather, bytes}, route);
    }
    ASSERT_TRUE(job.close());
    EXPECT_EQ(job.fabric.groups(), 0u);
    EXPECT_EQ(job.mpi.receives(), 0u);
  }
  // The group fails while one is complete nowhere.
  static void expect_gathered_again(fake::Job& job, int ranks, const ReductionShape& shape) {
    job.reduce_all(shape);
    for (int rank = 0; rank < ranks; ++rank) job.look(rank);
    job.fabric.fail(job.last_end(1), MCAST_CAUSE_DEVICE, "the port is gone");
    ASSERT_TRUE(job.run());
    EXPECT_THAT(job.results(), testing::Each(Code::kDone));
    EXPECT_TRUE(job.all_have_results());
    EXPECT_EQ(job.route(0), Route::kMessages);
  }
  static unsigned long long repaired() {
    return counters().values()[static_cast<std::size_t>(Counters::Which::kRepaired)];
  }
};

// ... of more data than a gather takes.
class LongReductionStory : public ReductionStory {
 protected:
  void SetUp() override {
    fake::use_small_sizes();
    parameters().most_gathered = 64;
    parameters().reduction_limit = 1 << 20;
    parameters().reduction_chunk = 16;
    parameters().copied_bytes = 0;
  }

  // `ranks` ranks begin one behind a barrier, and `failing`'s end of their group fails in this moment. All
  // results are right. The moment's number is the seed of what happens before it.
  static void expect_right_behind_a_failure(fake::Job& job, int ranks, const ReductionShape& shape,
                                            unsigned moment, int failing) {
    std::mt19937 random(moment * 3 + static_cast<unsigned>(failing));
    expect_right(job, ranks, kBarrier, Route::kNetwork);
    job.reduce_all(shape);
    for (unsigned i = 0; i < moment; ++i) {
      for (int rank = 0; rank < ranks; ++rank)
        if (random() % 4 == 0) job.look(rank);
      const auto moves = job.fabric.moves();
      if (!moves.empty()) job.fabric.move(moves[random() % moves.size()]);
    }
    job.fabric.fail(job.last_end(failing), MCAST_CAUSE_DEVICE, "the port is gone");
    ASSERT_TRUE(job.run()) << moment;
    ASSERT_THAT(job.results(), testing::Each(Code::kDone)) << moment;
    ASSERT_TRUE(job.all_have_results()) << moment << " at " << failing;
  }
};

}  // namespace cepheus::coll
