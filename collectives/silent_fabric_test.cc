// Many communicators over a fabric where no switch answers: the process remembers it for all of them.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "collectives/fakes/caller.h"
#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll {
namespace {

using namespace std::chrono_literals;

class SilentFabric : public testing::Test {
 protected:
  static constexpr ReductionShape kSum{Collective::kAllreduce, 8};

  // One communicator, with all its ranks.
  struct Communicator {
    std::deque<fake::Caller> callers;
    std::vector<std::vector<std::byte>> memory;
  };

  explicit SilentFabric(int ranks_of_each = 3) : ranks(ranks_of_each), mpi(ranks_of_each) {
    fake::use_small_sizes();
    fabric.outcomes = {MCAST_ERR_TIMED_OUT};
  }
  void make(int count) {
    for (int i = 0; i < count; ++i) {
      communicators.emplace_back().memory.resize(static_cast<std::size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank)
        communicators.back().callers.emplace_back(mpi.communicator(rank), 1);
    }
  }
  // Each silence takes a second.
  void move() {
    for (auto all = mpi.deliverable(); !all.empty(); all = mpi.deliverable())
      mpi.deliver(all.front());
    for (const std::uint32_t end : fabric.registering()) {
      if (fabric.outcomes.front() == MCAST_ERR_TIMED_OUT) fake::now() += 1s;
      fabric.conclude(end);
    }
    for (auto ends = fabric.deliverable(); !ends.empty(); ends = fabric.deliverable())
      fabric.deliver(ends.front());
    for (auto moves = fabric.moves(); !moves.empty(); moves = fabric.moves())
      fabric.move(moves.front());
  }
  // All ranks call it: a broadcast of `bytes`, or a reduction.
  void call(Communicator& on, std::size_t bytes) {
    for (int rank = 0; rank < ranks; ++rank) {
      auto& memory = on.memory[static_cast<std::size_t>(rank)];
      auto& caller = on.callers[static_cast<std::size_t>(rank)];
      if (bytes > 0) {
        memory.assign(bytes, std::byte{1});
        caller.begin(memory, 0, true, false);
      } else {
        memory = fake::memory_before(kSum, ranks, rank, 0);
        caller.begin(kSum, memory, true);
      }
    }
    int left = ranks;
    for (int moments = 0; left > 0 && moments < 1000; ++moments) {
      for (int rank = 0; rank < ranks; ++rank) {
        auto& caller = on.callers[static_cast<std::size_t>(rank)];
        fabric.caller = rank;
        fabric.progress(rank);
        if (!caller.is_calling()) continue;
        const Code rc = caller.progress();
        if (rc == Code::kPending) continue;
        EXPECT_TRUE(rc == Code::kDone || rc == Code::kNotServed);
        caller.finish(rc);
        --left;
      }
      move();
    }
    ASSERT_EQ(left, 0);
    fake::now() += 1ms;
  }
  std::string reason(const Communicator& on) { return on.callers.front().reason(); }

  const int ranks;
  fake::Mpi mpi;
  fake::Fabric fabric;
  std::deque<Communicator> communicators;
};

// Each attempt stalls all ranks of a communicator.
TEST_F(SilentFabric, IsTriedOnceForAllCommunicatorsAndCollectives) {
  make(50);
  for (int round = 0; round < 4; ++round) {  // 400 ms
    for (Communicator& each : communicators) {
      call(each, 0);
      call(each, 100);
    }
  }
  EXPECT_EQ(fabric.registrations(), 1u);
  EXPECT_NE(reason(communicators.back()).find("no switch answered"), std::string::npos)
      << reason(communicators.back());
  for (int round = 0; round < 40; ++round) {  // 4 s
    for (Communicator& each : communicators) {
      call(each, 0);
      call(each, 500);
    }
  }
  EXPECT_LE(fabric.registrations(), 4u) << "after 0.5 s, 1 s and 2 s";
}

TEST_F(SilentFabric, IsUsedOnceASwitchAnswers) {
  make(10);
  for (Communicator& each : communicators) call(each, 0);
  EXPECT_EQ(fabric.registrations(), 1u);
  fabric.outcomes = {MCAST_OK};
  fake::now() += 1s;
  for (int calls = 0; calls < 100; ++calls) {
    for (Communicator& each : communicators) call(each, 0);
  }
  for (Communicator& each : communicators) {
    EXPECT_EQ(reason(each), "the network");
    bool is_closed = false;
    for (int moments = 0; !is_closed && moments < 100; ++moments) {
      is_closed = true;
      for (fake::Caller& caller : each.callers) is_closed &= caller.close();
      move();
    }
    EXPECT_TRUE(is_closed);
  }
}

// A late member is no silent fabric.
TEST_F(SilentFabric, IsNotTakenForOneWithALateMember) {
  fabric.answers_in_part = true;
  make(10);
  for (Communicator& each : communicators) call(each, 0);
  EXPECT_EQ(fabric.registrations(), 10u);
}

class SilentFabricOfTwo : public SilentFabric {
 protected:
  SilentFabricOfTwo() : SilentFabric(2) {}
};

// The other member of the first one is late.
TEST_F(SilentFabricOfTwo, IsNotTakenForOneWithALateMember) {
  fabric.outcomes = {MCAST_ERR_TIMED_OUT, MCAST_OK};
  make(2);
  for (Communicator& each : communicators) call(each, 0);
  EXPECT_EQ(reason(communicators.back()), "the network");
}

TEST_F(SilentFabricOfTwo, IsTriedTwiceForAllCommunicators) {
  make(50);
  for (Communicator& each : communicators) call(each, 0);
  EXPECT_EQ(fabric.registrations(), 2u);
}

}  // namespace
}  // namespace cepheus::coll
