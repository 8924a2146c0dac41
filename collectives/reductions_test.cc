// Reductions as a host enters them: which calls are ours, and their order with broadcasts.
#include "collectives/reductions.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/bcast.h"
#include "collectives/communicators.h"
#include "collectives/core/counters.h"
#include "collectives/fakes/state_story.h"

namespace cepheus::coll {
namespace {

class Entrance : public StateStory {
 protected:
  static constexpr int kRanks = 3;
  static constexpr ReductionShape kSum{Collective::kAllreduce, 8};

  struct Memory {
    std::vector<std::byte> memory;
    bool is_over = false;
  };
  struct StartedReduction : Memory, Reduction {
    StartedReduction(const ReductionShape& what, int rank, std::size_t seed)
        : Memory{fake::memory_before(what, kRanks, rank, seed)},
          Reduction(
              what,
              {Payload(memory.data(), what.block), Payload(memory.data(), what.block), &mixing},
              [](Reduction* self, Code) { static_cast<StartedReduction*>(self)->is_over = true; }) {
    }
    fake::Mixing mixing;
  };
  struct StartedBroadcast : Memory, Broadcast {
    explicit StartedBroadcast(std::byte value)
        : Memory{std::vector<std::byte>(50, value)},
          Broadcast(Payload(memory.data(), memory.size()), 0, [](Broadcast* self, Code) {
            static_cast<StartedBroadcast*>(self)->is_over = true;
          }) {}
  };

  Entrance() : StateStory(kRanks) {}
  bool is_refused(int rank) const override { return rank == refused_rank; }
  // Each rank runs a program in a thread of its own. One thread runs at a time: a blocking call that
  // waits lets all that can move do so, and gives the next rank its turn.
  void run_ranks(const std::function<void(int)>& program) {
    std::mutex mutex;
    std::condition_variable turns;
    std::vector<std::unique_lock<std::mutex>> locks(kRanks);
    std::vector<bool> is_over(kRanks);
    int turn = 0;
    const auto give_turn = [&] {
      for (int i = 0; i < kRanks && is_over[static_cast<std::size_t>(turn = (turn + 1) % kRanks)];)
        ++i;
      turns.notify_all();
    };
    const auto await_turn = [&](int rank) {
      turns.wait(locks[static_cast<std::size_t>(rank)], [&] { return turn == rank; });
      fabric.caller = rank;
      fabric.progress(rank);
    };
    mpi.waits = [&] {
      move();
      const int rank = turn;
      give_turn();
      await_turn(rank);
    };
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        locks[static_cast<std::size_t>(rank)] = std::unique_lock(mutex);
        await_turn(rank);
        program(rank);
        is_over[static_cast<std::size_t>(rank)] = true;
        give_turn();
        locks[static_cast<std::size_t>(rank)].unlock();
      });
    for (std::thread& each : threads) each.join();
    mpi.waits = {};
  }
  static unsigned long long reduced(Collective collective, Counters::ReductionWay way) {
    return counters()
        .reductions()[static_cast<std::size_t>(collective)][static_cast<std::size_t>(way)];
  }

  int refused_rank = -1;  // MPI refuses this rank the receives of its plans
};

// Rank 2 starts them only once the others have waited, and in the same order.
TEST_F(Entrance, CallsOfAllKindsEndInOneOrder) {
  const auto before = reduced(Collective::kAllreduce, Counters::ReductionWay::kNetwork);
  std::deque<StartedReduction> reductions;
  std::deque<StartedBroadcast> broadcasts;
  const auto start_all = [&](int rank) {
    for (std::size_t i = 0; i < 3; ++i) {
      start(rank, reductions.emplace_back(kSum, rank, i));
      start(rank, broadcasts.emplace_back(rank == 0 ? std::byte{0x11} : std::byte{0}));
    }
  };
  start_all(0);
  start_all(1);
  pass();
  EXPECT_FALSE(reductions.front().is_over);
  start_all(2);
  pass();
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const auto rank = static_cast<int>(i / 3);
    ASSERT_TRUE(reductions[i].is_over) << i;
    EXPECT_EQ(reductions[i].outcome, Code::kDone);
    EXPECT_EQ(reductions[i].memory, fake::memory_after(kSum, kRanks, rank, i % 3));
    ASSERT_TRUE(broadcasts[i].is_over) << i;
    EXPECT_EQ(broadcasts[i].memory, std::vector<std::byte>(50, std::byte{0x11}));
  }
  EXPECT_EQ(reduced(Collective::kAllreduce, Counters::ReductionWay::kNetwork), before + 9);
}

// The program's function, which may do anything but call MPI.
class Calling final : public Operator {
 public:
  explicit Calling(std::function<void()> hook) : hook_(std::move(hook)) {}
  Code apply(const void* left, void* right, std::size_t elements) override {
    hook_();
    return mixing_.apply(left, right, elements);
  }

 private:
  fake::Mixing mixing_;
  const std::function<void()> hook_;
};

// Another thread may hold a lock that an operation needs, and make or free a communicator.
TEST_F(Entrance, AnOperationRunsWithoutTheLockOfAllCommunicators) {
  CommunicatorState other(mpi.communicator(0));
  bool has_waited_in_vain = false;
  std::future<void> freed;  // its end is awaited behind the operation
  Calling operation([&] {
    if (freed.valid()) return;
    freed = std::async(std::launch::async, [&] {
      watch_communicator(other);
      forget_communicator(other);
    });
    has_waited_in_vain = freed.wait_for(std::chrono::seconds(10)) != std::future_status::ready;
  });
  for (const auto& each : states) watch_communicator(*each);
  std::deque<StartedReduction> warm, sums;
  for (int rank = 0; rank < kRanks; ++rank) start(rank, warm.emplace_back(kSum, rank, 0));
  pass();  // sets the group up
  for (int rank = 0; rank < kRanks; ++rank) {
    StartedReduction& sum = sums.emplace_back(kSum, rank, 1);
    if (rank == 0) sum.data.op = &operation;
    start(rank, sum);
  }
  for (int i = 0; i < 100; ++i) {
    for (auto moves = fabric.moves(); !moves.empty(); moves = fabric.moves())
      fabric.move(moves.front());
    for (int rank = 0; rank < kRanks; ++rank) fabric.progress(rank);
    (void)progress_in_background();
  }
  for (const StartedReduction& each : sums) EXPECT_TRUE(each.is_over);
  EXPECT_FALSE(has_waited_in_vain);
  for (const auto& each : states) forget_communicator(*each);
}

// The ways are compared, and all ranks take the same one.
TEST_F(Entrance, TheSafeguardChoosesTheWayOfStartedOnes) {
  fake::use_safeguard();
  constexpr int kCalls = 20;
  std::vector<Route> routes;
  for (std::size_t call = 0; call < kCalls; ++call) {
    std::deque<StartedReduction> all;
    for (int rank = 0; rank < kRanks; ++rank) start(rank, all.emplace_back(kSum, rank, call));
    pass();
    for (int rank = 0; rank < kRanks; ++rank) {
      const StartedReduction& it = all[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(it.is_over);
      EXPECT_EQ(it.memory, fake::memory_after(kSum, kRanks, rank, call));
      EXPECT_EQ(it.algorithm->route(), all[0].algorithm->route()) << "the object of rank " << rank;
    }
    routes.push_back(all[0].algorithm->route());
  }
  EXPECT_EQ(std::vector(routes.begin(), routes.begin() + 4),
            (std::vector{Route::kNetwork, Route::kNetwork, Route::kMessages, Route::kMessages}));
}

// Messages of the agreement that has failed stay under way. MPI may give a later communicator the same
// tags.
TEST_F(Entrance, AFailedAgreementReachesNoLaterCommunicator) {
  fake::use_safeguard();
  const auto reduce = [&](std::size_t call) {
    std::deque<StartedReduction> all;
    for (int rank = 0; rank < kRanks; ++rank) start(rank, all.emplace_back(kSum, rank, call));
    pass();
    std::vector<Code> outcomes;
    for (const StartedReduction& each : all)
      outcomes.push_back(each.is_over ? each.outcome : Code::kPending);
    return outcomes;
  };
  refused_rank = 2;
  std::vector<Code> outcomes(kRanks, Code::kDone);
  for (std::size_t call = 0; call < 20 && outcomes[0] == Code::kDone; ++call)
    outcomes = reduce(call);
  for (const Code each : outcomes) EXPECT_TRUE(each != Code::kDone && each != Code::kPending);
  refused_rank = -1;
  end_states();
  mpi.make_communicators_anew();
  make_states();
  for (std::size_t call = 0; call < 40; ++call)
    ASSERT_EQ(reduce(call), std::vector<Code>(kRanks, Code::kDone)) << call;
}

// Open MPI's or MPICH's own function serves the samples, on all ranks alike.
TEST_F(Entrance, TheSafeguardSendsBlockingBarriersAndGathersToTheHostsOwnFunction) {
  fake::use_safeguard();
  constexpr std::size_t kCalls = 4;
  for (const ReductionShape& shape :
       {ReductionShape{Collective::kBarrier, 0}, ReductionShape{Collective::kAllgather, 8}, kSum}) {
    const bool may_be_saved = shape.collective != Collective::kAllreduce;
    const auto before = reduced(shape.collective, Counters::ReductionWay::kSaved);
    std::vector<std::string> ways(kRanks);
    run_ranks([&](int rank) {
      for (std::size_t call = 0; call < kCalls; ++call) {
        std::vector<std::byte> memory = fake::memory_before(shape, kRanks, rank, call);
        const std::vector<std::byte> right = fake::memory_after(shape, kRanks, rank, call);
        fake::Mixing mixing;
        bool is_saved = false;
        const auto data = [&] {
          const bool is_gather = shape.collective == Collective::kAllgather;
          std::byte* const own = memory.data() + (is_gather ? shape.block * rank : 0);
          return ReductionData{{own, shape.block}, {memory.data(), memory.size()}, &mixing};
        };
        const auto saved = [&] {
          is_saved = true;
          memory = right;
          return Code::kDone;
        };
        EXPECT_EQ(reduction(
                      state(rank), shape, [] { return ""; }, data, saved),
                  Code::kDone);
        EXPECT_EQ(memory, right) << name(shape.collective) << " " << call << " of rank " << rank;
        ways[static_cast<std::size_t>(rank)] += is_saved ? 's' : 'n';
      }
    });
    for (const std::string& each : ways) EXPECT_EQ(each, may_be_saved ? "nnss" : "nnnn");
    EXPECT_EQ(reduced(shape.collective, Counters::ReductionWay::kSaved),
              before + (may_be_saved ? 2 * kRanks : 0));
  }
}

TEST_F(Entrance, TheCollectiveAndTheBytesOfAllRanksDecideAlone) {
  const auto is_ours = [&](Collective collective, std::size_t block) {
    return ireduction_is_served(state(0), {collective, block});
  };
  parameters().reduction_limit = 300;
  EXPECT_TRUE(is_ours(Collective::kBarrier, 0));
  EXPECT_TRUE(is_ours(Collective::kAllgather, 100));
  EXPECT_FALSE(is_ours(Collective::kAllgather, 101));
  parameters().served = 1u << static_cast<unsigned>(Collective::kBcast);
  EXPECT_FALSE(is_ours(Collective::kBarrier, 0));
  parameters().served = 1u << static_cast<unsigned>(Collective::kReduce);
  EXPECT_TRUE(is_ours(Collective::kReduce, 1));
  EXPECT_FALSE(ibcast_is_served(state(0), 10, 0));
}

TEST_F(Entrance, LongOnesAreReducedByMessages) {
  parameters().most_gathered = 60;
  parameters().reduction_limit = 3000;
  const auto is_ours = [&](Collective collective, std::size_t block) {
    return ireduction_is_served(state(0), {collective, block});
  };
  EXPECT_TRUE(is_ours(Collective::kAllreduce, 1000));
  EXPECT_TRUE(is_ours(Collective::kReduce, 1000));
  EXPECT_FALSE(is_ours(Collective::kAllreduce, 1001));
  EXPECT_TRUE(is_ours(Collective::kAllgather, 20));
  EXPECT_FALSE(is_ours(Collective::kAllgather, 21));
  const ReductionShape shape{Collective::kAllreduce, 999};
  std::deque<StartedReduction> all;
  for (int rank = 0; rank < kRanks; ++rank) start(rank, all.emplace_back(shape, rank, 1));
  pass();
  for (int rank = 0; rank < kRanks; ++rank) {
    const StartedReduction& it = all[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(it.is_over);
    EXPECT_EQ(it.outcome, Code::kDone);
    EXPECT_EQ(it.memory, fake::memory_after(shape, kRanks, rank, 1));
    EXPECT_EQ(it.algorithm->route(), Route::kMessages);
    EXPECT_EQ(it.algorithm->reason(), "the switches do not have its operation on its type");
  }
}

TEST(Shapes, WithAnOperationOfTheProgramAreOursOnFewRanks) {
  ReductionShape sum{Collective::kAllreduce, 8};
  EXPECT_TRUE(may_be_ours(sum, 1000));
  sum.is_by_program = true;
  EXPECT_TRUE(may_be_ours(sum, kMostRanksByProgram));
  EXPECT_FALSE(may_be_ours(sum, kMostRanksByProgram + 1));
}

TEST_F(Entrance, TheFirstReductionsAreTheHosts) {
  parameters().set_up_after = 2;
  EXPECT_FALSE(state(0).may_serve(10)) << "broadcasts are counted apart";
  EXPECT_FALSE(state(0).may_serve(kSum));
  EXPECT_FALSE(state(0).may_serve(kSum));
  EXPECT_TRUE(state(0).may_serve(kSum));
}

TEST_F(Entrance, ModeRequireEndsNoJobForAReduction) {
  parameters().mode = static_cast<int>(Mode::kRequire);
  std::deque<StartedReduction> all;
  for (int rank = 0; rank < kRanks; ++rank) {
    parameters().reduction_limit = 300 + rank;  // ranks with other settings have no groups
    start(rank, all.emplace_back(kSum, rank, 1));
  }
  pass();
  for (int rank = 0; rank < kRanks; ++rank) {
    const StartedReduction& it = all[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(it.is_over);
    EXPECT_EQ(it.memory, fake::memory_after(kSum, kRanks, rank, 1));
    EXPECT_EQ(it.algorithm->route(), Route::kMessages);
  }
}

// The ranks look for a device again in some of these calls. The results of all have the host's bits.
TEST_F(Entrance, BlockingCallsAreTheHostsIfNoRankIsServed) {
  constexpr int kCalls = 70;
  std::vector<int> saved(kRanks);
  run_ranks([&](int rank) {
    for (int call = 0; call < kCalls; ++call) {
      parameters().reduction_limit = 300 + rank;  // ranks with other settings have no groups
      std::vector<std::byte> memory(kSum.block);
      fake::Mixing mixing;
      const auto data = [&] {
        return ReductionData{
            {memory.data(), memory.size()}, {memory.data(), memory.size()}, &mixing};
      };
      const auto count = [&] {
        ++saved[static_cast<std::size_t>(rank)];
        return Code::kDone;
      };
      parameters().most_gathered = call % 2 == 0 ? 100 : 0;  // then it is long
      EXPECT_EQ(reduction(
                    state(rank), kSum, [] { return ""; }, data, count),
                Code::kDone);
    }
  });
  EXPECT_EQ(saved, std::vector<int>(kRanks, kCalls));
}

TEST_F(Entrance, ABlockingCallThatIsNotOursIsTheHosts) {
  const auto before = reduced(Collective::kReduce, Counters::ReductionWay::kSaved);
  int saved = 0;
  const auto call = [&](std::size_t block) {
    return reduction(
        state(1), {Collective::kReduce, block}, [] { return ""; }, [] { return ReductionData{}; },
        [&] {
          ++saved;
          return Code::kDone;
        });
  };
  EXPECT_EQ(call(1u << 20), Code::kDone);
  EXPECT_EQ(saved, 1);
  EXPECT_EQ(call(0), Code::kDone);
  EXPECT_EQ(saved, 1) << "without data it is over at once";
  EXPECT_EQ(reduced(Collective::kReduce, Counters::ReductionWay::kSaved), before + 1);
}

}  // namespace
}  // namespace cepheus::coll
