// Reductions by the library's operations, on each path and after a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>

#include "arithmetic/combine.h"
#include "collectives/fakes/reduction_story.h"

namespace cepheus::coll {
namespace {

// Sums of floats show their pairs. No call has an operation of the host's.
class LibraryReductions : public ReductionStory {
 protected:
  static fake::Library sum() {
    return arithmetic::Combiner::find(arithmetic::Operation::kSum, arithmetic::Type::kFloat);
  }
  static void expect_sums(fake::Job& job, int ranks, Route route) {
    job.library = sum();
    for (const std::size_t bytes : {4u, 28u}) {
      expect_right(job, ranks, {Collective::kAllreduce, bytes}, route);
      expect_right(job, ranks, {Collective::kReduce, bytes, ranks / 2}, route);
    }
  }
};

TEST_F(LibraryReductions, HaveItsBitsOnEachPath) {
  for (int ranks = 3; ranks <= 9; ++ranks) {
    for (const int per_host : {1, 2}) {
      for (const bool has_group : {true, false}) {
        fake::Job job(ranks, per_host);
        if (!has_group) job.fabric.outcomes = {MCAST_ERR_INVALID};
        const Route route = !has_group      ? Route::kMessages
                            : per_host == 1 ? Route::kNetwork
                                            : Route::kHosts;
        expect_sums(job, ranks, route);
        EXPECT_TRUE(job.close());
      }
    }
  }
}

TEST_F(LibraryReductions, HaveItsBitsAfterAFailure) {
  fake::Job job(5);
  expect_sums(job, 5, Route::kNetwork);
  expect_gathered_again(job, 5, {Collective::kAllreduce, 60});
}

// The program rounds upwards, and its environment is as before behind the call.
TEST_F(LibraryReductions, DoNotDependOnTheProgramsRounding) {
  fake::Job job(5);
  job.library = sum();
  job.reduce_all({Collective::kAllreduce, 60});
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const bool is_over = job.run();
  const int rounding = std::fegetround();
  std::fesetround(FE_TONEAREST);
  ASSERT_TRUE(is_over);
  EXPECT_EQ(rounding, FE_UPWARD);
  EXPECT_TRUE(job.all_have_results());
}

}  // namespace
}  // namespace cepheus::coll
