// Reductions of a job: their ways, their results, and the ways that they take after a failure.
#include "collectives/reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <string>
#include <vector>

#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_job.h"

namespace cepheus::coll {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Ne;
using testing::Not;

class Reductions : public testing::Test {
 protected:
  static constexpr ReductionShape kBarrier{Collective::kBarrier, 0};
  static constexpr ReductionShape kSum{Collective::kAllreduce, 8};

  void SetUp() override { fake::use_small_sizes(); }

  // Runs one on all ranks, and expects it right everywhere, by `route`.
  static void expect_right(fake::Job& job, int ranks, const ReductionShape& shape, Route route) {
    job.reduce_all(shape);
    ASSERT_TRUE(job.run()) << name(shape.collective) << " of " << shape.block << " bytes";
    ASSERT_THAT(job.results(), Each(Code::kDone));
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
  static unsigned long long repaired() {
    return counters().values()[static_cast<std::size_t>(Counters::Which::kRepaired)];
  }
};

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

// MPI refuses a rank its message to a rank below it. `unheard`: the rank's message to that one, before
// the refused one, is under way for a while.
class RefusedSpread : public Reductions {
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

// Sums of floats show their pairs. No call has an operation of the host's.
class LibraryReductions : public Reductions {
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
  job.reduce_all({Collective::kAllreduce, 60});
  for (int rank = 0; rank < 5; ++rank) job.look(rank);
  job.fabric.fail(job.last_end(1), MCAST_CAUSE_DEVICE, "the port is gone");
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), Each(Code::kDone));
  EXPECT_TRUE(job.all_have_results());
  EXPECT_EQ(job.route(0), Route::kMessages);
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
  job.reduce_all(kSum);
  for (int rank = 0; rank < 3; ++rank) job.look(rank);
  job.fabric.fail(job.last_end(1), MCAST_CAUSE_DEVICE, "the port is gone");
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), Each(Code::kDone));
  EXPECT_TRUE(job.all_have_results());
  EXPECT_EQ(job.route(0), Route::kMessages);
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
