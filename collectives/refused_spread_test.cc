// MPI refuses a rank a message of a result's way inside its host. The program has asked for errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/fakes/reduction_story.h"

namespace cepheus::coll {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Ne;
using testing::Not;

// MPI refuses a rank its message to a rank below it. `unheard`: the rank's message to that one, before
// the refused one, is under way for a while.
class RefusedSpread : public ReductionStory {
 protected:
  struct Case {
    int failing, without;  // ranks
    int after;             // sends of the failing rank in the call
    int unheard = -1;
  };
  static constexpr int kRanks = 16, kPerHost = 8;
  static constexpr ReductionShape kGather{Collective::kAllgather, 16};

  static void pass_refused(fake::Job& job, const Case& at) {
    job.unheard = at.unheard;
    job.mpi.refused_after = at.after;
    job.mpi.most_refused = 1;
    for (int moments = 0; moments < 20; ++moments) {
      job.move();
      for (int rank = 0; rank < kRanks; ++rank) {
        job.mpi.refused_send.reset();
        if (rank == at.failing) job.mpi.refused_send = job.team(rank).tag(Tag::kBlocks);
        job.look(rank);
      }
    }
    job.mpi.refused_send.reset();
    ASSERT_EQ(job.mpi.refused(), 1u);
  }
  // The rank has logged its own error, and its leader blames no count.
  static void expect_errors_of_messages(const fake::Job& job, int failing) {
    EXPECT_THAT(job.mpi.errors, Contains(HasSubstr("rank " + std::to_string(failing) + ": ")));
    EXPECT_THAT(job.mpi.errors, Each(Not(HasSubstr("pass the same count"))));
  }
  static std::vector<std::byte> under_way(const fake::Job& job, int from, int to) {
    for (const std::size_t i : job.mpi.deliverable())
      if (job.mpi.sender(i) == from && job.mpi.receiver(i) == to) return job.mpi.content(i);
    return {};
  }
  static void begin_next(fake::Job& job) {
    for (int rank = 0; rank < kRanks; ++rank)
      if (job.result(rank) != Code::kPending) job.reduce(rank, kGather);
  }
};

TEST_F(RefusedSpread, EndsReductionsInErrorsFromThisOneOn) {
  parameters().copied_bytes = 0;
  // A leader sends no block; the other ranks send theirs first.
  for (const Case& each :
       {Case{0, 2, 1}, Case{0, 4, 2, 1}, Case{4, 5, 1}, Case{4, 6, 2, 5}, Case{6, 7, 1}}) {
    SCOPED_TRACE(std::to_string(each.failing) + " to " + std::to_string(each.without));
    fake::Job job(kRanks, kPerHost);
    expect_right(job, kRanks, kBarrier, Route::kHosts);
    job.reduce_all(kGather);
    pass_refused(job, each);
    EXPECT_NE(job.result(each.failing), Code::kDone);
    EXPECT_NE(job.result(each.without), Code::kDone);
    EXPECT_EQ(job.result(3), each.failing == 0 && each.without == 2 ? job.result(2) : Code::kDone);
    const std::vector<std::byte> sent = under_way(job, each.failing, each.unheard);
    EXPECT_EQ(sent.empty(), each.unheard < 0);
    begin_next(job);
    job.pass(std::chrono::milliseconds(20));
    EXPECT_EQ(under_way(job, each.failing, each.unheard), sent) << "the next call overwrites it";
    job.unheard = -1;
    for (int calls = 0; calls < 3; ++calls) {
      job.pass(std::chrono::milliseconds(20));
      begin_next(job);
      ASSERT_TRUE(job.run(std::chrono::seconds(1))) << calls;
      EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << calls;
    }
    EXPECT_TRUE(job.close());
    expect_errors_of_messages(job, each.failing);
  }
}

TEST_F(RefusedSpread, NamesARankThatCantSendItsBlock) {
  fake::Job job(kRanks, kPerHost);
  expect_right(job, kRanks, kBarrier, Route::kHosts);
  for (int calls = 0; calls < 2; ++calls) {
    begin_next(job);
    if (calls == 0) pass_refused(job, {4, 0, 0});
    ASSERT_TRUE(job.run(std::chrono::seconds(1))) << calls;
  }
  expect_errors_of_messages(job, 4);
}

}  // namespace
}  // namespace cepheus::coll
