#include "collectives/team_broadcast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_job.h"
#include "collectives/group/session.h"

namespace cepheus::coll {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::ElementsAre;

class Story : public testing::Test {
 protected:
  void SetUp() override { fake::use_small_sizes(); }
};

// Broadcasts of both lanes from every root.
void expect_right_broadcasts(fake::Job& job, int size) {
  for (int root = 0; root < size; ++root) {
    for (const std::size_t bytes : {10u, 200u, 300u}) {
      job.begin_all(root, bytes);
      ASSERT_TRUE(job.run()) << bytes << " bytes from " << root;
      ASSERT_THAT(job.results(), Each(Code::kDone));
      ASSERT_TRUE(job.all_have_data());
    }
  }
}

// The root's message shows it, and costs nothing more.
TEST_F(Story, ASmallBroadcastOfAnotherCountIsAnErrorOnItsRank) {
  fake::Job job(3);
  expect_right_broadcasts(job, 3);
  for (const std::size_t wrong : {5u, 15u}) {
    job.begin_all(0, 10);
    job.begin(2, 0, wrong);
    ASSERT_TRUE(job.run());
    const Code expected = wrong < 10 ? Code::kTruncated : Code::kCountsDiffer;
    EXPECT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, expected));
    expect_right_broadcasts(job, 3);
  }
}

// Pieces of the same length on all ranks, and no more posted than the window takes.
TEST_F(Story, ALargeBroadcastGoesInThePiecesThatItsGroupTakes) {
  for (const std::size_t portion : {1u, 7u, 49u, 1000u}) {
    fake::Job job(3);
    job.fabric.portion = portion;
    expect_right_broadcasts(job, 3);
    job.begin_all(1, 1000, false);
    ASSERT_TRUE(job.run()) << portion;
    EXPECT_THAT(job.results(), Each(Code::kDone));
    EXPECT_TRUE(job.all_have_data());
    EXPECT_EQ(job.route(0), Route::kBulk);
  }
}

// Its receives are posted, and its NIC takes them.
TEST_F(Story, ARankThatComputesStopsNoBroadcastInShortPieces) {
  fake::Job job(3);
  job.fabric.portion = 2;
  expect_right_broadcasts(job, 3);
  job.begin_all(0, 400, false);  // a unit of 200 pieces
  job.look(2);
  for (int i = 0; i < 1000 && job.result(0) == Code::kPending; ++i) {
    job.look(0);
    job.look(1);
    job.move();
  }
  EXPECT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kPending));
  ASSERT_TRUE(job.run());
  EXPECT_TRUE(job.all_have_data());
}

// A rank passes the size of a small broadcast, and the others that of a large one.
TEST_F(Story, ASetUpOfDifferentLanesEndsInTheSavedFunction) {
  fake::Job job(3);
  job.begin(0, 0, 300);
  job.begin(1, 0, 300);
  job.begin(2, 0, 200);
  ASSERT_TRUE(job.run());
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(job.route(rank), Route::kSaved);
}

using LostUnit = Story;

// Rank 2 of 4 loses the first of the broadcast's three units, which the fabric acknowledges for it.
void lose_first_unit(fake::Job& job, bool blocking) {
  expect_right_broadcasts(job, 4);
  job.fabric.deafen(job.last_end(2));
  job.begin_all(0, 1000, blocking);
  ASSERT_TRUE(job.run());
}

TEST_F(LostUnit, IsAnErrorOnTheRankThatLacksItAlone) {
  fake::Job job(4);
  lose_first_unit(job, true);
  EXPECT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kFailed, Code::kDone));
  expect_right_broadcasts(job, 4);
}

TEST_F(LostUnit, OfANonBlockingBroadcastIsAnErrorOnTheRankThatLacksItAlone) {
  fake::Job job(4);
  lose_first_unit(job, false);
  EXPECT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kFailed, Code::kDone));
  expect_right_broadcasts(job, 4);
}

TEST_F(LostUnit, IsAnErrorOnTheRanksOfTheHostThatLacksItAlone) {
  fake::Job job(4, 2);
  lose_first_unit(job, true);
  EXPECT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kFailed, Code::kFailed));
  expect_right_broadcasts(job, 4);
}

TEST_F(LostUnit, IsAnErrorOnAHostThoughTheRootDoesNotLeadItsOwn) {
  fake::Job job(4, 2);
  expect_right_broadcasts(job, 4);
  job.fabric.deafen(job.last_end(2));
  job.begin_all(1, 1000);
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kFailed, Code::kFailed));
  expect_right_broadcasts(job, 4);
}

// Mode "require" ends the job, though the ranks that have the data learn of the failure first. Rank
// 2 has lost the data, and then its NIC fails. It asks the root, which has returned.
TEST_F(LostUnit, EndsTheJobThatRequiresMulticast) {
  for (const std::size_t bytes : {10u, 300u}) {
    SCOPED_TRACE(bytes);
    fake::Job job(4);
    parameters().mode = static_cast<int>(Mode::kRequire);
    for (const std::size_t each : {310 - bytes, bytes}) {
      job.begin_all(0, each);
      ASSERT_TRUE(job.run());
    }
    job.fabric.deafen(job.last_end(2));
    job.begin_all(0, bytes);
    job.pass(milliseconds(20));
    ASSERT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kPending, Code::kDone));
    job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
    try {
      (void)job.run();
      FAIL() << "rank 2's call has returned";
    } catch (const fake::Aborted& abort) {
      EXPECT_EQ(abort.rank, 2);
      EXPECT_THAT(abort.reason, testing::HasSubstr("lost data"));
    }
    EXPECT_EQ(job.result(2), Code::kPending);
  }
}

using WrongRepair = Story;

// The group of 3 breaks before rank 2 has the broadcast, and its root's repair has `length` bytes.
void expect_error_of_repair(std::size_t bytes, std::size_t length) {
  SCOPED_TRACE(length);
  fake::Job job(3);
  expect_right_broadcasts(job, 3);
  job.mpi.wrong_lengths[job.team(0).tag(Tag::kRepair)] = length;
  job.begin_all(0, bytes);
  job.fabric.disconnect(2);
  job.pass(milliseconds(20));
  ASSERT_EQ(job.result(2), Code::kPending);
  job.fabric.fail(job.last_end(0), MCAST_CAUSE_WATCHDOG, "nobody answers");
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kTruncated));
  EXPECT_TRUE(job.has_data(1));
  job.mpi.wrong_lengths.clear();
  job.fabric.reconnect();
  expect_right_broadcasts(job, 3);
}

TEST_F(WrongRepair, OfASmallBroadcastIsAnErrorOnTheRankThatGetsIt) {
  constexpr std::size_t kRight = sizeof(EagerHeader) + 10;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, sizeof(EagerHeader), kRight - 1,
                                   kRight + 1, 2 * kRight, std::size_t{1000}})
    expect_error_of_repair(10, length);
}

TEST_F(WrongRepair, OfALargeBroadcastIsAnErrorOnTheRankThatGetsIt) {
  for (const std::size_t length : {0u, 1u, 24u, 299u, 301u, 1000u})
    expect_error_of_repair(300, length);
}

// Rank 2's NIC has acknowledged the data, so the root has returned. The group breaks, and rank 2
// computes for two seconds before MPI hands the data over.
TEST_F(Story, ARankThatComputesAfterAFailureLosesNothingThatHasArrived) {
  for (const std::size_t bytes : {10u, 300u}) {
    SCOPED_TRACE(bytes);
    fake::Job job(3);
    expect_right_broadcasts(job, 3);
    job.begin_all(0, bytes, false);
    job.look(2);
    for (int i = 0; i < 20; ++i) {
      job.move();
      job.look(0);
      job.look(1);
    }
    ASSERT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kPending));
    job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
    job.look(2, false);
    fake::now() += std::chrono::seconds(2);
    job.look(2, false);
    ASSERT_TRUE(job.run());
    EXPECT_THAT(job.results(), Each(Code::kDone));
    EXPECT_TRUE(job.all_have_data());
  }
}

// Ranks learn of a failure, and serve LACK, though messages of other lengths came before.
TEST_F(Story, UnknownMessagesDoNotCloseTheControlLink) {
  constexpr std::size_t kRight = sizeof(ControlMessage);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, kRight - 1, kRight + 1, 10 * kRight}) {
    SCOPED_TRACE(length);
    fake::Job job(3);
    expect_right_broadcasts(job, 3);
    const std::vector<std::byte> unknown(length);
    for (int to = 0; to < 3; ++to)
      (void)Messages::post(unknown.data(), length, to, Tag::kControl, job.team((to + 1) % 3));
    job.pass(milliseconds(5));
    job.begin_all(0, 10);
    job.fabric.disconnect(2);
    job.pass(milliseconds(20));
    ASSERT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kPending));
    job.fabric.fail(job.last_end(0), MCAST_CAUSE_WATCHDOG, "nobody answers");
    ASSERT_TRUE(job.run());
    EXPECT_THAT(job.results(), Each(Code::kDone));
    EXPECT_TRUE(job.all_have_data());
  }
}

using Leftover = Story;

// No message is left for a communicator to come, which MPI may give the same context.
void expect_nothing_left(fake::Job& job) {
  ASSERT_TRUE(job.close());
  job.move();
  for (int tag = 0; tag < static_cast<int>(Tag::kCount); ++tag)
    EXPECT_EQ(job.mpi.under_way(job.team(0).tag(static_cast<Tag>(tag))), 0u) << "tag " << tag;
}

// No rank has a group, so none receives control messages.
TEST_F(Leftover, OfALateRanksRefusedSetUpIsNothing) {
  fake::Job job(2);
  job.fabric.outcomes = {MCAST_ERR_REJECTED};
  job.begin(0, 0, 300);
  job.pass(std::chrono::seconds(2));
  job.begin(1, 0, 300);
  ASSERT_TRUE(job.run());
  expect_nothing_left(job);
}

// One that frees its communicator with a broadcast in flight is torn down, and others are not.
TEST_F(Leftover, WithoutAGroupNoRankWaitsForAnother) {
  fake::Job job(2);
  job.fabric.outcomes = {MCAST_ERR_REJECTED};
  job.begin_all(0, 300);
  ASSERT_TRUE(job.run());
  EXPECT_TRUE(job.close(1));
  expect_nothing_left(job);
}

// Ranks 1 and 2 report that they are ready to rank 0, which has given the group up.
TEST_F(Leftover, OfAFailureInALargeBroadcastIsNothing) {
  fake::Job job(3);
  expect_right_broadcasts(job, 3);
  for (const int rank : {1, 2}) job.begin(rank, 0, 300);
  for (int i = 0; i < 20; ++i) {
    for (const int rank : {1, 2}) job.look(rank);
  }
  job.fabric.fail(job.last_end(0), MCAST_CAUSE_DEVICE, "the port is gone");
  for (int i = 0; i < 3; ++i) job.look(0);
  job.begin(0, 0, 300);
  ASSERT_TRUE(job.run());
  EXPECT_TRUE(job.all_have_data());
  expect_nothing_left(job);
}

// A late rank is ordinary. The others then ask the root, rank 1, for their data.
TEST_F(Leftover, OfALateRankConnectsNoOtherRanks) {
  constexpr int kRanks = 16, kRoot = 1;
  fake::Job job(kRanks);
  for (const int late : {3, kRoot}) {
    for (const std::size_t bytes : {10u, 300u}) {
      for (int rank = 0; rank < kRanks; ++rank) {
        if (rank != late) job.begin(rank, kRoot, bytes);
      }
      job.pass(std::chrono::seconds(10));
      job.begin(late, kRoot, bytes);
      ASSERT_TRUE(job.run());
      ASSERT_TRUE(job.all_have_data());
    }
  }
  expect_nothing_left(job);
  for (int rank = kRoot + 1; rank < kRanks; ++rank)
    EXPECT_LE(job.mpi.receivers(rank), 2u) << "rank " << rank;
}

// The type of one rank has gaps, and there is no memory to stage its data in.
class ScarceMemory : public Story {
 protected:
  void SetUp() override {
    Story::SetUp();
    fake::make_memory_scarce(true);
  }
  void TearDown() override { fake::make_memory_scarce(false); }

  // The ranks with calls that end in an error. The next broadcasts are right.
  std::vector<int> failing_ranks(fake::Job& job, int scarce, bool blocking = true) {
    job.begin_all(0, 1000, blocking);
    job.begin(scarce, 0, 1000, blocking, true);
    EXPECT_TRUE(job.run());
    std::vector<int> failing;
    for (int rank = 0; rank < 4; ++rank) {
      if (job.result(rank) == Code::kNoMemory) failing.push_back(rank);
      EXPECT_TRUE(job.result(rank) != Code::kDone || job.has_data(rank)) << rank;
    }
    expect_right_broadcasts(job, 4);
    return failing;
  }
};

TEST_F(ScarceMemory, DownATreeIsAnErrorOnTheRankAndThoseBelow) {
  fake::Job job(4);
  job.fabric.outcomes = {MCAST_ERR_REJECTED};
  EXPECT_THAT(failing_ranks(job, 2, false), ElementsAre(2, 3));
}

// The saved function needs no such memory.
TEST_F(ScarceMemory, InAGroupIsNoErrorIfTheSavedFunctionCanServe) {
  fake::Job job(4);
  EXPECT_THAT(failing_ranks(job, 2), ElementsAre());
}

TEST_F(ScarceMemory, InAGroupIsAnErrorOnTheRankIfDataIsOnItsWay) {
  fake::Job job(4);
  EXPECT_THAT(failing_ranks(job, 2, false), ElementsAre(2, 3));
}

TEST_F(ScarceMemory, InsideAHostIsAnErrorOnTheRank) {
  fake::Job job(4, 2);
  EXPECT_THAT(failing_ranks(job, 1), ElementsAre(1));
}

TEST_F(ScarceMemory, OfAllRanksOfAHostSendsThemToTheSavedFunctionWithTheOthers) {
  for (const std::size_t bytes : {300u, 1000u}) {
    fake::Job job(4, 2);
    job.begin_all(0, bytes, true);
    for (const int rank : {2, 3}) job.begin(rank, 0, bytes, true, true);
    EXPECT_TRUE(job.run());
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(job.result(rank), Code::kDone) << rank;
    expect_right_broadcasts(job, 4);
  }
}

TEST_F(ScarceMemory, OfAHostsLeaderIsAnErrorOnItsHostIfTheSavedFunctionCanNotServe) {
  for (const bool blocking : {true, false}) {
    fake::Job job(4, 2);
    const std::vector<int> failing = failing_ranks(job, 2, blocking);
    EXPECT_THAT(failing, blocking ? std::vector<int>{} : std::vector<int>({2, 3}));
  }
}

// All messages of the broadcast's first window wait at rank 3 when it calls.
TEST_F(Story, ARankThatComesLateToItsHostsBroadcastGetsEachWindow) {
  fake::Job job(4, 2);
  for (const int rank : {0, 1, 2}) job.begin(rank, 0, 1000);
  job.pass(milliseconds(20));
  job.begin(3, 0, 1000);
  ASSERT_TRUE(job.run());
  EXPECT_THAT(job.results(), Each(Code::kDone));
  EXPECT_TRUE(job.all_have_data());
}

// The lane of large broadcasts fails at rank 2, and the others do not know that. Then the lane of
// small ones is set up. The root is two broadcasts ahead of rank 2.
TEST_F(Story, ALaneThatIsSetUpBehindALocalFailureLosesNothing) {
  fake::Job job(3);
  job.begin_all(0, 300);
  ASSERT_TRUE(job.run());
  job.fabric.fail(job.last_end(2), MCAST_CAUSE_DEVICE, "the port is gone");
  job.pass(milliseconds(20));

  job.begin(2, 0, 10);
  job.look(2);
  for (const std::size_t bytes : {10u, 20u, 30u}) {
    job.begin(0, 0, bytes);
    job.begin(1, 0, bytes);
    for (int i = 0; i < 20; ++i) {
      job.move();
      job.look(0);
      job.look(1);
    }
    ASSERT_THAT(job.results(), ElementsAre(Code::kDone, Code::kDone, Code::kPending));
  }
  for (const std::size_t bytes : {10u, 20u, 30u}) {
    if (bytes > 10) job.begin(2, 0, bytes);
    ASSERT_TRUE(job.run());
    ASSERT_EQ(job.result(2), Code::kDone) << bytes;
    ASSERT_TRUE(job.has_data(2)) << bytes;
  }
  for (int i = 0; i < 10'000 && job.route(2) != Route::kEager; ++i) {
    job.begin_all(0, 10);
    ASSERT_TRUE(job.run());
  }
  EXPECT_EQ(job.route(2), Route::kEager) << "multicast never came back";
}

// A hundred broadcasts a second. Nothing is known of the rate at the first failure: 16 units.
TEST_F(Story, ASecondFailedSetUpIsTriedAgainAfterASecond) {
  fake::Job job(2);
  job.fabric.outcomes = {MCAST_ERR_REJECTED, MCAST_ERR_REJECTED, MCAST_OK};
  int units = 0;
  for (; units < 1000 && job.route(0) != Route::kEager; ++units) {
    job.begin_all(0, 10);
    ASSERT_TRUE(job.run());
    job.pass(milliseconds(10));
  }
  EXPECT_NEAR(units, 16 + 100, 30);
}

}  // namespace
}  // namespace cepheus::coll
