// Calls of a job with a safeguard, over a fabric that may be slow.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

#include "collectives/core/parameters.h"
#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_job.h"

namespace cepheus::coll {

class SafeguardStory : public testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static constexpr ReductionShape kBarrier{Collective::kBarrier, 0};
  static constexpr ReductionShape kSum{Collective::kAllreduce, 8};
  static constexpr ReductionShape kGather{Collective::kAllgather, 8};

  void SetUp() override {
    fake::use_small_sizes();
    parameters().safeguard_samples = 10;
  }

  // Groups are there, and no broadcast is timed yet that `bytes` are the size of.
  void set_up(fake::Job& job, std::size_t bytes, bool blocking = true) {
    broadcast(job, 1, bytes, std::chrono::milliseconds(0), blocking);
  }
  // Broadcasts of `bytes` from all ranks in turn. The fabric holds each back for `held`.
  void broadcast(fake::Job& job, int count, std::size_t bytes, std::chrono::milliseconds held,
                 bool blocking = true) {
    for (int i = 0; i < count; ++i) {
      job.begin_all(i % kRanks, bytes, blocking);
      run_held(job, held);
      ASSERT_TRUE(job.all_have_data());
    }
  }
  // ... of reductions.
  void reduce(fake::Job& job, int count, const ReductionShape& shape,
              std::chrono::milliseconds held, bool blocking = true) {
    for (int i = 0; i < count; ++i) {
      job.reduce_all(shape, blocking);
      run_held(job, held);
      ASSERT_TRUE(job.all_have_results());
    }
  }
  // Until the safeguard has given up a network that takes many times as long. A plan has at most 18
  // calls, and two plans are a comparison.
  void reduce_slowly(fake::Job& job, const ReductionShape& shape, bool blocking = true) {
    reduce(job, 1, shape, std::chrono::milliseconds(0), blocking);
    constexpr int kElsewhere =
        7;  // 5 samples, a call behind an agreement, and one of the next plan
    int elsewhere = 0;
    for (int calls = 0; calls < 4 * 18 && elsewhere < kElsewhere; ++calls) {
      reduce(job, 1, shape, std::chrono::milliseconds(50), blocking);
      elsewhere = is_in_network(job) ? 0 : elsewhere + 1;
    }
    EXPECT_EQ(elsewhere, kElsewhere);
  }
  static bool is_in_network(const fake::Job& job) {
    return job.route(0) == Route::kNetwork || job.route(0) == Route::kHosts;
  }
  static void expect_route(const fake::Job& job, Route route) {
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(job.route(rank), route) << rank;
  }

 private:
  static void run_held(fake::Job& job, std::chrono::milliseconds held) {
    job.fabric.disconnect(2);
    job.pass(held);
    job.fabric.reconnect();
    ASSERT_TRUE(job.run());
    ASSERT_THAT(job.results(), testing::Each(Code::kDone));
  }
};

}  // namespace cepheus::coll
