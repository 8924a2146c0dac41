// Messages of a failed call may stay under way for ever. MPI may give a later communicator the same
// tags, unless a rank has retired them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/communicator_state.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/caller.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_mpi.h"
#include "collectives/group/transport.h"

namespace cepheus::coll {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;

class RetiredTags : public testing::Test {
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
    fake::Mixing mixing{kSum.block};
  };

  void SetUp() override {
    fake::use_small_sizes();
    parameters().ranks_per_host = -1;  // a host is a NIC
    parameters().set_up_after = 0;
    make_states();
    std::string why;
    while (Transport::instance().open(why, true) != MCAST_OK) {
    }
  }
  void TearDown() override {
    end_states();
    parameters() = {};
  }
  void make_states() {
    for (int rank = 0; rank < kRanks; ++rank)
      states.push_back(std::make_unique<CommunicatorState>(mpi.communicator(rank)));
  }
  void end_states() {
    if (states.empty()) return;
    for (const auto& each : states) (void)each->close();
    pass();
    for (const auto& each : states) {
      EXPECT_TRUE(each->is_closed());
      each->detach();
    }
    states.clear();
  }
  void pass() {
    for (int i = 0; i < 100; ++i) {
      for (auto all = on_time(); !all.empty(); all = on_time()) mpi.deliver(all.front());
      for (const std::uint32_t end : fabric.registering()) fabric.conclude(end);
      for (auto ends = fabric.deliverable(); !ends.empty(); ends = fabric.deliverable())
        fabric.deliver(ends.front());
      for (auto moves = fabric.moves(); !moves.empty(); moves = fabric.moves())
        fabric.move(moves.front());
      for (int rank = 0; rank < kRanks; ++rank) {
        CommunicatorState& state = *states[static_cast<std::size_t>(rank)];
        act_as(rank);
        fabric.progress(rank);
        TurnQueue complete;
        state.advance(complete);
        CommunicatorState::finish(complete);
        state.watch();
      }
    }
  }
  void act_as(int rank) {
    fabric.caller = rank;
    mpi.refused_tag.reset();
    if (rank == refused_rank && mpi.refused() == refused_before)
      mpi.refused_tag =
          Team::all(mpi.communicator(rank), host::Communicator{}.next_tag).tag(refused);
  }
  // Ranks whose counts are wrong broadcast other bytes.
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

  fake::Mpi mpi{kRanks};
  fake::Fabric fabric;
  std::vector<std::unique_ptr<CommunicatorState>> states;
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

  std::vector<std::size_t> on_time() const {
    std::vector<std::size_t> messages = mpi.deliverable();
    std::erase_if(messages, [this](std::size_t i) {
      return mpi.sender(i) == late_from && mpi.receiver(i) == late_to;
    });
    return messages;
  }
  void start(int rank, Turn& turn) {
    act_as(rank);
    states[static_cast<std::size_t>(rank)]->start(turn);
  }
  template <typename Calls>
  std::vector<Code> outcomes(const Calls& calls) {
    pass();
    std::vector<Code> all;
    for (const Call& each : calls) all.push_back(each.outcome);
    return all;
  }
};

TEST_F(RetiredTags, AreThoseOfNoRankWhoseCallsAreRight) {
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
TEST_F(RetiredTags, AreThoseOfARankWhoseBroadcastHasFailed) {
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
