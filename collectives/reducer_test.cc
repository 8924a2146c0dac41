// Reductions of a job: their ways, their results, and the ways that they take after a failure.
#include "collectives/reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/fakes/reduction_story.h"

namespace cepheus::coll {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ne;

class Reductions : public ReductionStory {};

TEST_F(Reductions, OfAnyNumberOfRanksGoesByTheNetwork) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    fake::Job job(ranks);
    expect_all_right(job, ranks, Route::kNetwork);
  }
}

TEST_F(Reductions, OfSeveralRanksAHostGoesByTheirLeaders) {
  for (int ranks = 4; ranks <= 9; ++ranks) {
    for (const int per_host : {2, 3}) {
      fake::Job job(ranks, per_host);
      expect_all_right(job, ranks, Route::kHosts);
    }
  }
}

// ... and has the same bits.
TEST_F(Reductions, GoesByMessagesWithoutAGroup) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    for (const int per_host : {1, 2}) {
      if (ranks <= per_host) continue;  // one host
      fake::Job job(ranks, per_host);
      job.fabric.outcomes = {MCAST_ERR_INVALID};
      expect_all_right(job, ranks, Route::kMessages);
      const std::string reason = job.reason(1);
      EXPECT_EQ(reason.starts_with("rank 0, which leads this host"), per_host == 2) << reason;
    }
  }
}

TEST_F(Reductions, TooLongForItsGroupGoesByMessages) {
  fake::Job job(4);
  job.fabric.reduction_bytes = 64;
  expect_right(job, 4, {Collective::kAllgather, 16}, Route::kNetwork);
  expect_right(job, 4, {Collective::kAllgather, 17}, Route::kMessages);
  expect_right(job, 4, kBarrier, Route::kNetwork);
  EXPECT_TRUE(job.close());
}

// Rank 0 needs no message of the dead one.
TEST_F(Reductions, TooLongForItsGroupEndsInErrorsIfARankDies) {
  fake::Job job(4);
  job.fabric.reduction_bytes = 64;
  expect_right(job, 4, kBarrier, Route::kNetwork);
  job.reduce_all({Collective::kAllgather, 17});
  for (int rank = 0; rank < 4; ++rank) job.look(rank);
  job.move();
  job.mpi.kill(3);
  for (int moments = 0; moments < 100; ++moments) {
    for (int rank = 0; rank < 3; ++rank) job.look(rank);
    job.move();
    job.mpi.fail_operations_with_the_dead();
  }
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_THAT(job.result(rank), AllOf(Ne(Code::kDone), Ne(Code::kPending))) << rank;
}

// Rank 1 passes another count. Rank 2 has not begun, so rank 0's block is still under way to it.
TEST_F(Reductions, ThatHasFailedKeepsTheBlocksThatItsSendsRead) {
  parameters().copied_bytes = 0;
  fake::Job job(3);
  job.fabric.outcomes = {MCAST_ERR_INVALID};
  expect_right(job, 3, kBarrier, Route::kMessages);
  job.unheard = 2;
  job.reduce(0, {Collective::kAllgather, 64});
  job.reduce(1, {Collective::kAllgather, 48});
  job.pass(std::chrono::milliseconds(10));
  ASSERT_EQ(job.result(0), Code::kTruncated);
  const auto block_of_rank_0 = [&job] {
    for (const std::size_t i : job.mpi.deliverable()) {
      if (job.mpi.sender(i) != 0 || job.mpi.receiver(i) != 2) continue;
      if (auto content = job.mpi.content(i); content.size() == 64) return content;
    }
    return std::vector<std::byte>();
  };
  const std::vector<std::byte> sent = block_of_rank_0();
  ASSERT_EQ(sent.size(), 64u);
  job.reduce(0, {Collective::kAllgather, 64});
  job.pass(std::chrono::milliseconds(10));
  EXPECT_EQ(job.result(0), Code::kFailed);
  EXPECT_EQ(block_of_rank_0(), sent);
}

// Each rank of a job in turn, in its first reduction or in a later one. No rank waits for ever, and
// the communicator ends.
class FailedReductions : public Reductions {
 protected:
  template <typename Fail>
  static void expect_errors(const std::vector<int>& per_hosts, Fail fail) {
    for (const int per_host : per_hosts) {
      for (int failing = 0; failing < 8; ++failing) {
        for (const bool has_group : {false, true}) {
          fake::Job job(8, per_host);
          if (has_group) job.reduce_all(kSum);
          ASSERT_TRUE(job.run());
          for (int rank = 0; rank < 8; ++rank)
            if (rank != failing) job.reduce(rank, kSum);
          fail(job, failing);
          ASSERT_TRUE(job.run()) << failing;
          EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
          job.reduce_all(kSum);
          ASSERT_TRUE(job.run()) << failing;
          EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
          job.begin_all(failing, 100);  // whatever messages the failed set-up has left
          ASSERT_TRUE(job.run()) << failing;
          EXPECT_TRUE(job.all_have_data()) << failing;
          ASSERT_TRUE(job.close());
          EXPECT_EQ(job.mpi.receives(), 0u);
        }
      }
    }
  }
};

TEST_F(FailedReductions, OfARankWhoseDataCantBeReadEndInErrorsEverywhere) {
  expect_errors({1, 4},
                [](fake::Job& job, int failing) { job.reduce(failing, kSum, Code::kNoMemory); });
}

TEST_F(FailedReductions, OfARankWithAnotherCountOnItsHostEndInErrorsEverywhere) {
  expect_errors({4}, [](fake::Job& job, int failing) {
    job.reduce(failing, {Collective::kAllreduce, 16});
  });
}

// MPI refuses a rank its receive of the blocks once. Another rank of its host is below it in the tree.
TEST_F(FailedReductions, OfARankThatGetsNoBlocksEndInErrorsEverywhere) {
  for (const int failing : {1, 2, 3, 6}) {
    fake::Job job(8, 4);
    job.reduce_all(kSum);
    ASSERT_TRUE(job.run());
    job.mpi.refused_after = 0;
    job.reduce_all(kSum);
    for (int moments = 0; moments < 100; ++moments) {
      job.move();
      for (int rank = 0; rank < 8; ++rank) {
        job.mpi.refused_tag.reset();
        if (rank == failing && job.mpi.refused() == 0)
          job.mpi.refused_tag = job.team(rank).tag(Tag::kBlocks);
        job.look(rank);
      }
    }
    job.mpi.refused_tag.reset();
    ASSERT_EQ(job.mpi.refused(), 1u);
    EXPECT_EQ(job.result(0), Code::kDone) << failing;
    for (int calls = 0; calls < 3; ++calls) {
      job.reduce_all(kSum);
      ASSERT_TRUE(job.run(std::chrono::seconds(1))) << failing;
      EXPECT_THAT(job.results(), Each(Ne(Code::kDone))) << failing;
    }
    ASSERT_TRUE(job.close());
  }
}

TEST_F(Reductions, WaitsForALateRank) {
  fake::Job job(3);
  expect_right(job, 3, kSum, Route::kNetwork);
  job.reduce(0, kSum);
  job.reduce(1, kSum);
  job.pass(std::chrono::seconds(20));
  EXPECT_EQ(job.result(0), Code::kPending);
  job.reduce(2, kSum);
  ASSERT_TRUE(job.run());
  EXPECT_TRUE(job.all_have_results());
  EXPECT_EQ(job.route(0), Route::kNetwork);
}

// One rank has the result, and has returned.
TEST_F(Reductions, ThatIsCompleteAtOneRankIsCopiedByTheOthers) {
  fake::Job job(3);
  expect_right(job, 3, kSum, Route::kNetwork);
  job.reduce_all(kSum);
  for (int rank = 0; rank < 3; ++rank) job.look(rank);
  for (const auto& each : job.fabric.moves()) job.fabric.move(each);
  for (const auto& each : job.fabric.moves())
    if (job.fabric.rank_of(each.end) == 1) job.fabric.move(each);
  job.look(1);
  ASSERT_EQ(job.result(1), Code::kDone);
  const auto before = repaired();
  job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
  job.fabric.disconnect(0);
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), Each(Code::kDone));
  EXPECT_TRUE(job.all_have_results());
  EXPECT_EQ(repaired(), before + 2);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(job.is_comparable(rank), rank == 1) << "its time is the messages'";
  job.fabric.reconnect();
  for (int i = 0; i < 3; ++i) expect_right(job, 3, kSum, Route::kMessages);
  for (int i = 0; i < 40; ++i) {
    job.reduce_all(kSum);
    ASSERT_TRUE(job.run());
    ASSERT_TRUE(job.all_have_results());
  }
  expect_right(job, 3, kSum, Route::kNetwork);  // again
  EXPECT_TRUE(job.is_comparable(0));
  EXPECT_TRUE(job.close());
}

TEST_F(Reductions, ThatIsCompleteNowhereIsGatheredAgain) {
  fake::Job job(3);
  expect_right(job, 3, kSum, Route::kNetwork);
  expect_gathered_again(job, 3, kSum);
}

TEST_F(Reductions, ALostResultIsFound) {
  fake::Job job(2);
  expect_right(job, 2, kSum, Route::kNetwork);
  job.fabric.deafen(job.last_end(0));
  const auto lost = [] { return counters().fallbacks()[static_cast<std::size_t>(Cause::kLost)]; };
  const auto lost_before = lost(), repaired_before = repaired();
  job.reduce_all(kSum);
  ASSERT_TRUE(job.run(std::chrono::minutes(1)));
  EXPECT_TRUE(job.all_have_results());
  EXPECT_EQ(lost(), lost_before + 2) << "both ranks count it";
  EXPECT_EQ(repaired(), repaired_before + 1);
}

// Two ranks below each host's leader, one of them with another one below.
TEST_F(Reductions, SpreadsBlocksToTheRanksThatReduceThem) {
  constexpr int kRanks = 8, kPerHost = 4;
  constexpr std::size_t kOutcome = 8, kBytes = 32;
  fake::Job job(kRanks, kPerHost);
  expect_right(job, kRanks, kSum, Route::kHosts);
  const auto sent = [&](const ReductionShape& shape, int rank) {
    const std::size_t before = job.mpi.sent_bytes(rank);
    expect_right(job, kRanks, shape, Route::kHosts);
    return job.mpi.sent_bytes(rank) - before;
  };
  const std::size_t all = kOutcome + kRanks * kBytes;
  EXPECT_EQ(sent({Collective::kAllgather, kBytes}, 0), 2 * all);
  EXPECT_EQ(sent(kBarrier, 0), 2 * kOutcome);
  const ReductionShape to_third{Collective::kReduce, kBytes, 3};  // below rank 2
  EXPECT_EQ(sent(to_third, 0), all + kOutcome);
  EXPECT_EQ(sent(to_third, 2), kBytes + all);
  EXPECT_EQ(sent(to_third, 1), kBytes);
  EXPECT_EQ(sent(to_third, 4), 2 * kOutcome) << "of the host without the root";
  EXPECT_TRUE(job.close());
}

// Each kind has a group of its own.
TEST_F(Reductions, AndBroadcastsTakeTurns) {
  for (const int per_host : {1, 2}) {
    fake::Job job(4, per_host);
    for (int i = 0; i < 3; ++i) {
      job.begin_all(i, 100);
      ASSERT_TRUE(job.run());
      EXPECT_TRUE(job.all_have_data());
      expect_right(job, 4, kSum, per_host == 1 ? Route::kNetwork : Route::kHosts);
    }
    EXPECT_TRUE(job.close());
    EXPECT_EQ(job.mpi.receives(), 0u);
  }
}

}  // namespace
}  // namespace cepheus::coll
