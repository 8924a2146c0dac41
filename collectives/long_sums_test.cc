// Long floating-point sums: the ways that each value of `reproducible` lets them take, and their bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "collectives/fakes/reduction_story.h"

namespace cepheus::coll {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int kRanks = 4;
constexpr const char* kByTree = "the tree of its group's switches is not flat";
constexpr const char* kDescending =
    "addresses do not ascend with ranks: rank 0 has 10.0.255.255, rank 1 has 10.0.255.254";

class LongSums : public LongReductionStory {
 protected:
  static constexpr ReductionShape kFloats{Collective::kAllreduce, 3004, 0, false, 4};

  static void choose(Reproducible value) { parameters().reproducible = static_cast<int>(value); }
  static fake::Library sum(arithmetic::Type type = arithmetic::Type::kFloat) {
    return arithmetic::Combiner::find(arithmetic::Operation::kSum, type);
  }
  static void use_other_tree(fake::Job& job) { job.fabric.is_flat = false; }
  static void use_descending(fake::Job& job) { job.fabric.has_ascending_addresses = false; }

  // All ranks have the same bits, by `route`. They are not those of pairs by rank.
  static void expect_others(fake::Job& job, Route route) {
    job.reduce_all(kFloats);
    ASSERT_TRUE(job.run());
    ASSERT_THAT(job.results(), Each(Code::kDone));
    EXPECT_TRUE(job.have_equal_results());
    EXPECT_FALSE(job.all_have_results());
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(job.route(rank), route) << rank;
  }
};

TEST_F(LongSums, ByRankGoByMessagesIfTheGroupHasOtherPairs) {
  for (const auto& [use, why] :
       {std::pair(&use_other_tree, kByTree), std::pair(&use_descending, kDescending)}) {
    fake::Job job(kRanks);
    use(job);
    job.library = sum();
    for (int calls = 0; calls < 3; ++calls) {
      expect_right(job, kRanks, kFloats, Route::kMessages);
      EXPECT_THAT(job.reason(1), HasSubstr(why)) << calls;
      EXPECT_THAT(job.reason(1), HasSubstr("reproducible")) << calls;
    }
    job.library = sum(arithmetic::Type::kInt32);
    expect_right(job, kRanks, kFloats, Route::kNetwork);
    job.library = sum();
    expect_right(job, kRanks, kFloats, Route::kMessages);
    ASSERT_TRUE(job.close());
    EXPECT_EQ(job.fabric.groups(), 0u);
    EXPECT_EQ(job.mpi.receives(), 0u);
  }
}

TEST_F(LongSums, ByTreeGoByTheNetworkInEveryGroup) {
  for (const Reproducible value : {Reproducible::kTree, Reproducible::kOff}) {
    for (const auto use : {use_other_tree, use_descending}) {
      choose(value);
      fake::Job job(kRanks);
      use(job);
      job.library = sum();
      for (int calls = 0; calls < 3; ++calls) expect_others(job, Route::kNetwork);
      ASSERT_TRUE(job.close());
    }
  }
}

TEST_F(LongSums, HavePairsByRankInAFlatGroupWhateverIsChosen) {
  for (const Reproducible value : {Reproducible::kRank, Reproducible::kTree, Reproducible::kOff}) {
    choose(value);
    fake::Job job(kRanks);
    job.library = sum();
    expect_right(job, kRanks, kFloats, Route::kNetwork);
    ASSERT_TRUE(job.close());
  }
}

// The group comes up without them, and serves integers.
TEST_F(LongSums, GoByMessagesIfASwitchHasNoMemoryForThem) {
  for (const Reproducible value : {Reproducible::kRank, Reproducible::kTree}) {
    choose(value);
    fake::Job job(kRanks);
    job.fabric.refuses_sums = true;
    job.library = sum();
    expect_right(job, kRanks, kFloats, Route::kMessages);
    expect_right(job, kRanks, kFloats, Route::kMessages);
    EXPECT_EQ(job.reason(2), "its group can't add floating-point numbers: refused by the test");
    EXPECT_EQ(job.fabric.registrations(), 2u);
    job.library = sum(arithmetic::Type::kInt32);
    expect_right(job, kRanks, kFloats, Route::kNetwork);
    ASSERT_TRUE(job.close());
    EXPECT_EQ(job.fabric.groups(), 0u);
  }
}

// The safeguard compares ways with the same bits alone, unless the user takes others.
TEST_F(LongSums, KeepTheirWayIfMessagesHaveOtherBits) {
  fake::use_safeguard();
  for (const auto& [value, is_flat, are_compared] :
       {std::tuple(Reproducible::kRank, true, true), std::tuple(Reproducible::kTree, true, true),
        std::tuple(Reproducible::kTree, false, false),
        std::tuple(Reproducible::kOff, false, true)}) {
    choose(value);
    fake::Job job(kRanks);
    job.fabric.is_flat = is_flat;
    job.library = sum();
    std::size_t by_messages = 0;
    for (int calls = 0; calls < 40; ++calls) {
      job.reduce_all(kFloats);
      ASSERT_TRUE(job.run());
      ASSERT_THAT(job.results(), Each(Code::kDone));
      ASSERT_TRUE(job.have_equal_results());
      ASSERT_TRUE(!is_flat || job.all_have_results());
      if (job.route(0) == Route::kMessages) ++by_messages;
    }
    EXPECT_EQ(by_messages > 0, are_compared) << static_cast<int>(value) << is_flat;
    ASSERT_TRUE(job.close());
  }
}

// In each moment, at each rank: pairs by rank in the network, and behind its failure.
TEST_F(LongSums, HaveTheSameBitsIfTheGroupFails) {
  std::size_t by_messages = 0;
  for (unsigned moment = 0; moment < 60; ++moment) {
    for (int failing = 0; failing < 3; ++failing) {
      fake::Job job(3);
      job.library = sum();
      ASSERT_NO_FATAL_FAILURE(expect_right_behind_a_failure(job, 3, kFloats, moment, failing));
      if (job.route(0) == Route::kMessages) ++by_messages;
      ASSERT_TRUE(job.close());
    }
  }
  EXPECT_GT(by_messages, 20u);
}

}  // namespace
}  // namespace cepheus::coll
