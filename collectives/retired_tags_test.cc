// Messages of a failed call may stay under way for ever. MPI may give a later communicator the same
// tags, unless a rank has retired them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

#include "collectives/fakes/state_story.h"

namespace cepheus::coll {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;

class RetiredTags : public StateStory {
 protected:
  static constexpr int kRanks = 4;
  static constexpr ReductionShape kSum{Collective::kAllreduce, 8};

  struct Call {
    explicit Call(std::vector<std::byte> with) : memory(std::move(with)) {}
    std::vector<std::byte> memory;
    Code outcome = Code::kPending;
  };
  struct StartedBroadcast : Call, Broadcast {
    StartedBroadcast(std::size_t bytes, int from)
        : Call(std::vector<std::byte>(bytes, std::byte{0xEE})),
          Broadcast(Payload(memory.data(), bytes), from, [](Broadcast* self, Code rc) {
            static_cast<StartedBroadcast*>(self)->Call::outcome = rc;
          }) {}
  };
  struct StartedReduction : Call, Reduction {
    explicit StartedReduction(int rank)
        : Call(fake::memory_before(kSum, kRanks, rank, 0)),
          Reduction(
              kSum,
              {Payload(memory.data(), kSum.block), Payload(memory.data(), kSum.block), &mixing},
              [](Reduction* self, Code rc) {
                static_cast<StartedReduction*>(self)->Call::outcome = rc;
              }) {}
    fake::Mixing mixing;
  };

  RetiredTags() : StateStory(kRanks) {}
  // `wrong_rank` passes another count, and so broadcasts other bytes.
  std::vector<Code> broadcast(std::size_t bytes, int root, int wrong_rank = -1) {
    auto& all = broadcasts.emplace_back();
    for (int rank = 0; rank < kRanks; ++rank)
      start(rank, all.emplace_back(rank == wrong_rank ? bytes + 3 : bytes, root));
    return outcomes(all);
  }
  std::vector<Code> reduce() {
    auto& all = reductions.emplace_back();
    for (int rank = 0; rank < kRanks; ++rank) start(rank, all.emplace_back(rank));
    return outcomes(all);
  }
  // By rank.
  std::vector<bool> has_retired() {
    std::vector<bool> all;
    for (int rank = 0; rank < kRanks; ++rank)
      all.push_back(mpi.communicator(rank).has_retired_tags);
    return all;
  }
  void expect_a_later_one_is_right() {
    mpi.make_communicators_anew();
    fabric.outcomes = {MCAST_OK};
    make_states();
    for (int call = 0; call < 3; ++call) {
      EXPECT_THAT(reduce(), Each(Code::kDone)) << call;
      EXPECT_THAT(broadcast(100, call % kRanks), Each(Code::kDone)) << call;
    }
  }

  // The rank's next receive with this tag, behind `after` others.
  void refuse(int rank, Tag tag, int after = 0) {
    refused_rank = rank;
    refused = tag;
    mpi.refused_after = after;
    refused_before = mpi.refused();
  }
  int late_from = -1, late_to = -1;  // no message of one to the other arrives

 private:
  int refused_rank = -1;
  Tag refused = Tag::kBlocks;
  std::size_t refused_before = 0;
  std::deque<std::deque<StartedBroadcast>> broadcasts;  // until no message uses their memory
  std::deque<std::deque<StartedReduction>> reductions;

  bool is_refused(int rank) const override {
    return rank == refused_rank && mpi.refused() == refused_before;
  }
  Tag refused_tag() const override { return refused; }
  std::vector<std::size_t> on_time() const override {
    std::vector<std::size_t> messages = mpi.deliverable();
    std::erase_if(messages, [this](std::size_t i) {
      return mpi.sender(i) == late_from && mpi.receiver(i) == late_to;
    });
    return messages;
  }
  template <typename Calls>
  std::vector<Code> outcomes(const Calls& calls) {
    pass();
    std::vector<Code> all;
    for (const Call& each : calls) all.push_back(each.outcome);
    return all;
  }
};

TEST_F(RetiredTags, AreKeptBehindRightCalls) {
  EXPECT_THAT(broadcast(100, 1), Each(Code::kDone));
  EXPECT_THAT(reduce(), Each(Code::kDone));
  end_states();
  EXPECT_THAT(has_retired(), Each(false));
}

// All messages of the broadcast are taken. A process has few tags, or context ids.
TEST_F(RetiredTags, AreNotThoseOfABroadcastWithAWrongCount) {
  EXPECT_THAT(broadcast(100, 0, 2), Contains(Code::kCountsDiffer));
  end_states();
  EXPECT_THAT(has_retired(), Each(false));
  expect_a_later_one_is_right();
}

// MPI refuses one rank the receive of a broadcast down the tree.
TEST_F(RetiredTags, AreThoseOfARankWithAFailedBroadcast) {
  fabric.outcomes = {MCAST_ERR_INVALID};
  refuse(3, Tag::kTree);
  EXPECT_THAT(broadcast(600, 0),
              ElementsAre(Code::kDone, Code::kDone, Code::kDone, Code::kNoMemory));
  end_states();
  EXPECT_THAT(has_retired(), ElementsAre(false, false, false, true));
  expect_a_later_one_is_right();
}

// Ranks 1 and 3 complete a reduction by messages. Rank 2 is refused one of its second round.
TEST_F(RetiredTags, AreThoseOfAllRanksOnceOneHasGivenUp) {
  fabric.outcomes = {MCAST_ERR_INVALID};
  refuse(2, Tag::kBlocks, 1);
  EXPECT_THAT(reduce(), ElementsAre(Code::kFailed, Code::kDone, Code::kNoMemory, Code::kDone));
  end_states();
  EXPECT_THAT(has_retired(), Each(true));
  expect_a_later_one_is_right();
}

// ... and ends before rank 2's messages arrive. libcepheus-mpi.so has tags for each receiver, so that
// rank must retire its own.
TEST_F(RetiredTags, AreThoseOfARankThatLearnsLateOfAFailure) {
  fabric.outcomes = {MCAST_OK, MCAST_ERR_INVALID};
  EXPECT_THAT(reduce(), Each(Code::kDone));
  for (const std::uint32_t end : fabric.ends()) fabric.fail(end, MCAST_CAUSE_DEVICE, "no port");
  refuse(2, Tag::kBlocks, 1);
  late_from = 2;
  late_to = 3;
  EXPECT_THAT(reduce(), ElementsAre(Code::kFailed, Code::kDone, Code::kNoMemory, Code::kDone));
  end_states();
  EXPECT_THAT(has_retired(), Each(true));
  late_from = late_to = -1;
  expect_a_later_one_is_right();
}

}  // namespace
}  // namespace cepheus::coll
