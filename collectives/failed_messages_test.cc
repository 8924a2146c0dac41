// MPI's messages fail at one rank, in the ranks' agreement on their ways or in the reduction behind it.
// The program has asked for errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/fakes/safeguard_story.h"

namespace cepheus::coll {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::Ne;

class MessagesFail : public SafeguardStory {
 protected:
  // ... in all later reductions, of all kinds. Broadcasts go on.
  void expect_errors(fake::Job& job, int ranks) {
    for (int calls = 0; calls < 4; ++calls) {
      for (const ReductionShape& shape : {kBarrier, kGather, kSum}) {
        job.reduce_all(shape, calls % 2 == 0);
        ASSERT_TRUE(job.run(std::chrono::seconds(1))) << name(shape.collective) << " " << calls;
        EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << name(shape.collective);
      }
    }
    broadcast(job, 6, 200, milliseconds(0));  // with an agreement, if there are any
    ASSERT_TRUE(job.close());
    EXPECT_EQ(job.mpi.receives(), 0u);
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_TRUE(job.mpi.communicator(rank).has_retired_tags) << rank;
  }
};

// MPI refuses one rank a receive of the ranks' agreement.
class RefusedAgreement : public MessagesFail {
 protected:
  struct Case {
    int ranks, per_host, failing;
    Tag refused;
    std::string text() const {
      return std::to_string(failing) + " of " + std::to_string(ranks) + ", " +
             std::to_string(per_host) + " a host";
    }
  };
  // Reductions until one needs an agreement.
  static void reduce_refused(fake::Job& job, const Case& at, const ReductionShape& shape,
                             bool blocking) {
    for (int calls = 0; calls < 200 && job.result(0) == Code::kDone; ++calls) {
      job.reduce_all(shape, blocking);
      for (int moments = 0; moments < 100; ++moments) {
        job.move();
        for (int rank = 0; rank < at.ranks; ++rank) {
          job.mpi.refused_tag.reset();
          if (rank == at.failing) job.mpi.refused_tag = job.team(rank).tag(at.refused);
          job.look(rank);
        }
        fake::now() += milliseconds(1);
      }
      job.mpi.refused_tag.reset();
      ASSERT_THAT(job.results(), Each(Ne(Code::kPending))) << calls;
    }
    ASSERT_THAT(job.results(), Each(Ne(Code::kDone)));
  }
};

TEST_F(RefusedAgreement, EndsReductionsInErrorsOnAllRanks) {
  for (const Case& each :
       {Case{4, 1, 0, Tag::kTimes}, Case{4, 1, 2, Tag::kPlan}, Case{4, 2, 1, Tag::kPlan},
        Case{4, 2, 2, Tag::kPlan}, Case{40, 1, 1, Tag::kTimes}, Case{40, 1, 1, Tag::kPlan},
        Case{40, 2, 39, Tag::kPlan}}) {
    for (const ReductionShape& shape : {kBarrier, kGather, kSum}) {
      for (const bool blocking : {true, false}) {
        SCOPED_TRACE(each.text() + ", " + to_text({shape.collective, shape.block, blocking}));
        fake::Job job(each.ranks, each.per_host);
        const bool is_large = each.ranks > kRanks;
        if (is_large && (!blocking || shape.collective == Collective::kAllgather)) continue;
        if (is_large) job.fabric.outcomes = {MCAST_ERR_INVALID};  // the fake of it is slow
        reduce_refused(job, each, shape, blocking);
        expect_errors(job, each.ranks);
      }
    }
  }
}

// The class is at MPI's function, or at messages where that may not serve it.
TEST_F(RefusedAgreement, EndsReductionsOutsideTheNetworkInErrorsOnAllRanks) {
  for (const Case& each : {Case{4, 1, 0, Tag::kTimes}, Case{4, 1, 2, Tag::kPlan},
                           Case{4, 2, 1, Tag::kPlan}, Case{4, 2, 2, Tag::kPlan}}) {
    for (const ReductionShape& shape : {kBarrier, kGather, kSum}) {
      for (const bool blocking : {true, false}) {
        SCOPED_TRACE(each.text() + ", " + to_text({shape.collective, shape.block, blocking}));
        fake::Job job(each.ranks, each.per_host);
        reduce_slowly(job, shape, blocking);
        reduce_refused(job, each, shape, blocking);
        expect_errors(job, each.ranks);
      }
    }
  }
}

// All ranks have agreed. MPI refuses one of them a receive of the reduction that confirms this.
class FailedConfirmation : public MessagesFail {
 protected:
  struct Case {
    int per_host, failing;
    int receive;               // of the failing rank
    std::vector<int> succeed;  // these ranks complete the reduction
    bool is_refused;           // no rank can, and all know that
  };
  // Calls until that reduction, and this one.
  static void reduce_refused(fake::Job& job, const Case& at, const ReductionShape& shape) {
    job.mpi.refused_after = at.receive;
    const int before = refused(job);
    for (int calls = 0; calls < 200 && refused(job) == before; ++calls) {
      job.reduce_all(shape);
      for (int moments = 0; moments < 100; ++moments) {
        job.move();
        for (int rank = 0; rank < kRanks; ++rank) {
          // Rank 0 has the plan first.
          const bool is_there = job.reason(0).starts_with("all ranks have agreed");
          job.mpi.refused_tag.reset();
          if (rank == at.failing && is_there && refused(job) == before)
            job.mpi.refused_tag = job.team(rank).tag(Tag::kBlocks);
          job.look(rank);
        }
        fake::now() += milliseconds(1);
      }
      job.mpi.refused_tag.reset();
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      const bool succeeds = std::ranges::count(at.succeed, rank) > 0;
      EXPECT_NE(job.result(rank), Code::kPending) << rank;
      EXPECT_EQ(job.result(rank) == Code::kDone, succeeds) << rank;
    }
  }
  // Calls that are right on all ranks, by the saved function, until one fails on all.
  static int follow_plan(fake::Job& job, const ReductionShape& shape) {
    for (int calls = 0; calls < 200; ++calls) {
      job.reduce_all(shape);
      const bool has_ended = job.run(std::chrono::seconds(1));
      EXPECT_TRUE(has_ended) << calls;
      if (!has_ended || job.result(0) != Code::kDone) return calls;
      EXPECT_THAT(job.results(), Each(Code::kDone)) << calls;
      expect_route(job, Route::kSaved);
    }
    ADD_FAILURE() << "no agreement follows";
    return 0;
  }

 private:
  static int refused(const fake::Job& job) { return static_cast<int>(job.mpi.refused()); }
};

// Some ranks have completed the reduction, and follow the plan into MPI's own function.
TEST_F(FailedConfirmation, LeavesAllRanksAtTheirPlan) {
  const std::vector<Case> cases{{1, 2, 1, {1, 3}, false},
                                {1, 2, 0, {}, false},
                                {2, 3, 0, {0, 1, 2}, false},
                                {2, 2, 1, {}, false},
                                {2, 2, 0, {}, true}};
  for (const ReductionShape& shape : {kBarrier, kGather}) {
    for (const Case& each : cases) {
      SCOPED_TRACE(std::string(name(shape.collective)) + ", rank " + std::to_string(each.failing) +
                   " of " + std::to_string(each.per_host) + " a host, receive " +
                   std::to_string(each.receive));
      fake::Job job(kRanks, each.per_host);
      reduce_slowly(job, shape);
      reduce_refused(job, each, shape);
      EXPECT_EQ(follow_plan(job, shape) > 0, !each.is_refused);
      expect_errors(job, kRanks);
    }
  }
}

// All ranks have agreed, and one that leads no host passes another count in the call that confirms this.
TEST_F(MessagesFail, BehindAnotherCountRightBehindAnAgreement) {
  ReductionShape other = kGather;
  other.block -= 3;  // of the same class of sizes
  int confirming = 0;
  for (const int failing : {-1, 1, 3}) {
    fake::Job job(kRanks, 2);
    reduce_slowly(job, kGather);
    for (int calls = 0; calls <= (failing < 0 ? 200 : confirming); ++calls) {
      for (int rank = 0; rank < kRanks; ++rank)
        job.reduce(rank, calls == confirming && rank == failing ? other : kGather);
      ASSERT_TRUE(job.run(std::chrono::seconds(1)))
          << failing << " in call " << calls << ": " << testing::PrintToString(job.results());
      if (failing >= 0 || !job.reason(0).starts_with("all ranks have agreed")) continue;
      confirming = calls;
      break;
    }
    if (failing >= 0) expect_errors(job, kRanks);
  }
}

}  // namespace
}  // namespace cepheus::coll
