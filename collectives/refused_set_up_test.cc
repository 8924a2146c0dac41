// MPI refuses one rank a message that sets up a group of reductions, or that the members need to agree
// about one: as it is posted, or as it completes. The program has asked for errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_job.h"

namespace cepheus::coll {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Ne;

class RefusedSetUp : public testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static constexpr ReductionShape kSum{Collective::kAllreduce, 8};

  using Refuses = fake::Mpi::Refuses;
  struct Case {
    int failing;
    Tag tag;
    bool is_send;
    int after = 0;  // messages of this kind before
    Refuses when = Refuses::kAtOnce;
    bool is_leader_last = false;  // ranks look in this order, and messages arrive at once
    std::string text(int per_host) const {
      return std::string(is_send ? "send" : "receive") + " of tag " +
             std::to_string(static_cast<int>(tag)) + " at rank " + std::to_string(failing) + ", " +
             std::to_string(per_host) + " a host" +
             (when == Refuses::kAtOnce  ? ""
              : when == Refuses::kLater ? ", as it completes"
                                        : ", as it completes, and it arrives") +
             (is_leader_last ? ", the leader looks last" : "");
    }
  };
  // Ranks 0 and 2 lead the hosts, if two ranks share one.
  static std::vector<Case> cases(int per_host) {
    std::vector<Case> found{{0, Tag::kReductionControl, false},
                            {2, Tag::kReductionControl, false},
                            {0, Tag::kReductionSetUp, false},
                            {2, Tag::kReductionSetUp, true},
                            {0, Tag::kReductionOutcome, true}};
    if (per_host > 1) return found;
    found.push_back({0, Tag::kReductionSetUp, false, 1});
    found.push_back({0, Tag::kReductionOutcome, true, 1});  // rank 1 has a group then
    return found;
  }
  // A message of the set-up is posted, and completes in an error.
  static std::vector<Case> cases_at_completion(int per_host) {
    std::vector<Case> found;
    for (const bool is_leader_last : {false, true}) {
      for (const Refuses when : {Refuses::kLater, Refuses::kLaterButArrives}) {
        std::vector<Case> all = cases(per_host);
        all.push_back({2, Tag::kReductionOutcome, false});
        for (Case each : all) {
          if (each.tag == Tag::kReductionControl) continue;
          // The leader announces to all that it lacks a record: they reduce by messages.
          if (each.tag == Tag::kReductionSetUp && !each.is_send) continue;
          if (when == Refuses::kLaterButArrives && !each.is_send) continue;
          each.when = when;
          each.is_leader_last = is_leader_last;
          found.push_back(each);
        }
      }
    }
    return found;
  }

  void SetUp() override { fake::use_small_sizes(); }

  // Reductions until MPI has refused the message once, and that one.
  static void reduce_refused(fake::Job& job, const Case& at) {
    job.mpi.refused_after = at.after;
    job.mpi.most_refused = 1;
    job.mpi.refuses_so = at.when;
    for (int calls = 0; calls < 200 && job.mpi.refused() == 0; ++calls) {
      ASSERT_THAT(job.results(), Each(Code::kDone)) << calls;
      job.reduce_all(kSum);
      for (int moments = 0; moments < 100; ++moments) {
        job.move();
        for (int looks = 0; looks < kRanks; ++looks) {
          const int rank = at.is_leader_last ? kRanks - 1 - looks : looks;
          job.mpi.refused_tag.reset();
          job.mpi.refused_send.reset();
          if (rank == at.failing)
            (at.is_send ? job.mpi.refused_send : job.mpi.refused_tag) = job.team(rank).tag(at.tag);
          job.look(rank);
          if (at.is_leader_last) job.move();
        }
        fake::now() += std::chrono::milliseconds(1);
      }
    }
    job.mpi.refused_tag.reset();
    job.mpi.refused_send.reset();
    ASSERT_EQ(job.mpi.refused(), 1u);
  }
  static void expect_errors(const fake::Job& job) {
    EXPECT_THAT(job.results(), Each(AllOf(Ne(Code::kDone), Ne(Code::kPending))));
  }
  // All later reductions end in errors; broadcasts, and the communicator's end, do not.
  static void expect_end(fake::Job& job) {
    for (int calls = 0; calls < 3; ++calls) {
      job.reduce_all(kSum);
      ASSERT_TRUE(job.run(std::chrono::seconds(1))) << calls;
      expect_errors(job);
    }
    job.begin_all(1, 100);
    ASSERT_TRUE(job.run());
    EXPECT_TRUE(job.all_have_data());
    EXPECT_TRUE(job.close());
    EXPECT_EQ(job.mpi.receives(), 0u);
    EXPECT_EQ(job.fabric.groups(), 0u);
  }
  static void expect_errors_on_all_ranks(std::vector<Case> (*cases_of)(int per_host)) {
    for (const int per_host : {1, 2}) {
      for (const Case& each : cases_of(per_host)) {
        SCOPED_TRACE(each.text(per_host));
        fake::Job job(kRanks, per_host);
        reduce_refused(job, each);
        expect_errors(job);
        expect_end(job);
      }
    }
  }
};

TEST_F(RefusedSetUp, EndsReductionsInErrorsOnAllRanks) { expect_errors_on_all_ranks(cases); }

// The leader may have registered the group by then, and other members may have it.
TEST_F(RefusedSetUp, AtCompletionEndsReductionsInErrorsOnAllRanks) {
  expect_errors_on_all_ranks(cases_at_completion);
}

// The rank's record tells the leader, and the leader's outcome tells all others.
TEST_F(RefusedSetUp, OfItsOutcomeLeavesReductionsToMessages) {
  for (const int per_host : {1, 2}) {
    for (const bool is_leader_last : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << per_host << " a host, the leader last: " << is_leader_last);
      fake::Job job(kRanks, per_host);
      reduce_refused(job, {2, Tag::kReductionOutcome, false, 0, Refuses::kAtOnce, is_leader_last});
      for (int calls = 0; calls < 100; ++calls) {
        ASSERT_THAT(job.results(), Each(Code::kDone)) << calls;
        EXPECT_TRUE(job.all_have_results()) << calls;
        EXPECT_EQ(job.route(0), Route::kMessages) << calls;
        job.reduce_all(kSum);
        ASSERT_TRUE(job.run(std::chrono::seconds(1))) << calls;
      }
      EXPECT_THAT(job.mpi.errors, IsEmpty());
      EXPECT_EQ(job.fabric.registrations(), 0u);
      EXPECT_TRUE(job.close());
      EXPECT_EQ(job.mpi.receives(), 0u);
    }
  }
}

// The error is MPI's, and not the reason for which no group has come up.
TEST_F(RefusedSetUp, OfAFailuresAnnouncementNamesMpi) {
  for (const Refuses when : {Refuses::kAtOnce, Refuses::kLater}) {
    fake::Job job(kRanks);
    job.fabric.outcomes = {MCAST_ERR_REJECTED};
    reduce_refused(job, {0, Tag::kReductionOutcome, true, 1, when});
    expect_errors(job);
    EXPECT_THAT(job.mpi.errors, Contains(HasSubstr("point-to-point layer failed during set-up")));
    expect_end(job);
  }
}

// ... of the next group, after a failure. The receive of control messages is there then.
TEST_F(RefusedSetUp, OfALaterGroupEndsReductionsInErrorsOnAllRanks) {
  for (const int per_host : {1, 2}) {
    for (const Case& each : cases(per_host)) {
      if (each.tag == Tag::kReductionControl) continue;
      SCOPED_TRACE(each.text(per_host));
      fake::Job job(kRanks, per_host);
      job.reduce_all(kSum);
      ASSERT_TRUE(job.run());
      job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
      reduce_refused(job, each);
      expect_errors(job);
      expect_end(job);
    }
  }
}

// Its next call must not be taken for this one of the others.
TEST_F(RefusedSetUp, LeavesNoRankOneCallBehind) {
  fake::Job job(kRanks);
  job.mpi.most_refused = 1;
  job.reduce_all(kSum);
  for (int moments = 0; moments < 10; ++moments) {
    for (int rank = 0; rank < kRanks; ++rank) {
      job.mpi.refused_tag.reset();
      if (rank == 3) job.mpi.refused_tag = job.team(rank).tag(Tag::kReductionControl);
      job.look(rank);
    }
    job.move();
  }
  job.mpi.refused_tag.reset();
  ASSERT_THAT(job.result(3), AllOf(Ne(Code::kDone), Ne(Code::kPending)));
  job.reduce(3, kSum);
  ASSERT_TRUE(job.run(std::chrono::seconds(1)));
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_NE(job.result(rank), Code::kDone)
        << "rank " << rank << " has a result of the first call, with the second one's data";
}

// MPI refuses a rank its receives from some message on, of a group that fails then.
TEST_F(RefusedSetUp, OfFurtherControlMessagesEndsReductionsInErrorsOnAllRanks) {
  for (const int failing : {0, 2}) {
    fake::Job job(kRanks);
    job.reduce_all(kSum);
    ASSERT_TRUE(job.run());
    job.fabric.fail(job.last_end(1), MCAST_CAUSE_DEVICE, "the port is gone");
    job.reduce_all(kSum);
    for (int moments = 0; moments < 100; ++moments) {
      job.move();
      for (int rank = 0; rank < kRanks; ++rank) {
        job.mpi.refused_tag.reset();
        if (rank == failing) job.mpi.refused_tag = job.team(rank).tag(Tag::kReductionControl);
        job.look(rank);
      }
      fake::now() += std::chrono::milliseconds(1);
    }
    job.mpi.refused_tag.reset();
    ASSERT_GT(job.mpi.refused(), 0u);
    expect_errors(job);
    expect_end(job);
  }
}

// Without a group, and behind a message that no rank can use, MPI refuses a rank the receive of the next
// one. It is tried again, and that one is of a rank that gives up.
TEST_F(RefusedSetUp, OfALaterControlMessageLeavesNoRankWaiting) {
  fake::Job job(kRanks);
  job.fabric.outcomes = {MCAST_ERR_INVALID};
  job.reduce_all(kSum);
  ASSERT_TRUE(job.run());
  job.reduce(0, kSum);
  job.reduce(2, kSum);
  job.mpi.wrong_lengths[job.team(1).tag(Tag::kReductionControl)] = 3;
  job.reduce(1, kSum, Code::kNoMemory);
  job.look(1);
  job.mpi.wrong_lengths.clear();
  job.move();
  job.mpi.refused_tag = job.team(2).tag(Tag::kReductionControl);
  job.mpi.most_refused = 1;
  for (int looks = 0; looks < 100; ++looks) job.look(2);
  job.mpi.refused_tag.reset();
  ASSERT_EQ(job.mpi.refused(), 1u);
  job.reduce(3, kSum, Code::kNoMemory);
  ASSERT_TRUE(job.run(std::chrono::seconds(1)));
  expect_errors(job);
}

// MPI refuses one rank a message of the set-up of a lane of broadcasts.
class RefusedLane : public RefusedSetUp {
 protected:
  static void broadcast_refused(fake::Job& job, const Case& at, int root, std::size_t bytes) {
    job.mpi.most_refused = 1;
    job.mpi.refuses_so = at.when;
    job.begin_all(root, bytes);
    for (int moments = 0; moments < 100; ++moments) {
      job.move();
      for (int rank = 0; rank < kRanks; ++rank) {
        job.mpi.refused_tag.reset();
        job.mpi.refused_send.reset();
        if (rank == at.failing)
          (at.is_send ? job.mpi.refused_send : job.mpi.refused_tag) = job.team(rank).tag(at.tag);
        job.look(rank);
      }
      fake::now() += std::chrono::milliseconds(1);
    }
    job.mpi.refused_tag.reset();
    job.mpi.refused_send.reset();
    ASSERT_EQ(job.mpi.refused(), 1u);
  }
};

TEST_F(RefusedLane, OfItsOutcomeLeavesBroadcastsToTheSavedFunction) {
  for (const std::size_t bytes : {10u, 300u}) {
    for (const int root : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes from " << root);
      fake::Job job(kRanks);
      broadcast_refused(job, {2, Tag::kOutcome, false}, root, bytes);
      for (int calls = 0; calls < 100; ++calls) {
        ASSERT_THAT(job.results(), Each(Code::kDone)) << calls;
        EXPECT_TRUE(job.all_have_data());
        EXPECT_EQ(job.route(0), Route::kSaved);
        job.begin_all(root, bytes);
        ASSERT_TRUE(job.run()) << calls;
      }
      job.begin_all(root, 310 - bytes);
      ASSERT_TRUE(job.run());
      EXPECT_THAT(job.results(), Each(Code::kDone));
      EXPECT_EQ(job.route(0), bytes == 10 ? Route::kBulk : Route::kEager);
      EXPECT_TRUE(job.close());
      EXPECT_EQ(job.mpi.receives(), 0u);
    }
  }
}

// The others do not know of it: it must not take the saved function alone.
TEST_F(RefusedLane, OfAnyOtherMessageIsAnErrorAtItsRank) {
  parameters().safeguard_samples = 10;
  for (const Case& each :
       {Case{0, Tag::kSetUp, false}, Case{2, Tag::kSetUp, true}, Case{0, Tag::kOutcome, true},
        Case{2, Tag::kSetUp, true, 0, Refuses::kLater},
        Case{2, Tag::kSetUp, true, 0, Refuses::kLaterButArrives},
        Case{2, Tag::kOutcome, false, 0, Refuses::kLater},
        Case{0, Tag::kOutcome, true, 0, Refuses::kLater}}) {
    for (const std::size_t bytes : {10u, 300u}) {
      SCOPED_TRACE(each.text(1) + ", " + std::to_string(bytes) + " bytes");
      fake::Job job(kRanks);
      broadcast_refused(job, each, 1, bytes);
      EXPECT_THAT(job.result(each.failing), AllOf(Ne(Code::kDone), Ne(Code::kPending)));
      EXPECT_THAT(job.mpi.errors, ElementsAre(HasSubstr("its broadcasts end in errors")));
      // Nor later, where the safeguard compares ways, until it waits for the others: they may be in
      // an earlier call, and would take its data.
      for (int calls = 0; calls < 100; ++calls) {
        job.begin(each.failing, 1, calls % 2 == 0 ? 310 - bytes : bytes);
        job.look(each.failing);
        ASSERT_NE(job.result(each.failing), Code::kDone) << calls;
        if (job.result(each.failing) == Code::kPending) break;
        ASSERT_LT(calls, 99);
      }
    }
  }
}

}  // namespace
}  // namespace cepheus::coll
