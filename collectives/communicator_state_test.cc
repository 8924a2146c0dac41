#include "collectives/communicator_state.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "collectives/communicators.h"
#include "collectives/core/agreement.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_job.h"
#include "collectives/fakes/fake_mpi.h"
#include "collectives/group/transport.h"

namespace cepheus::coll {
namespace {

// Calls are counted in reports of this program's own.
class Reports : public testing::Environment {
  void SetUp() override {
    setenv("CEPHEUS_REPORT_DIR", mkdtemp((path_ = testing::TempDir() + "reports-XXXXXX").data()),
           1);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string path_;
};
[[maybe_unused]] const auto* const kReports = testing::AddGlobalTestEnvironment(new Reports);

// Ranks that each have a NIC. Rank 0 is the root of all broadcasts.
class Ranks {
 public:
  explicit Ranks(int size, bool of_session = false) : mpi_(size) {
    fake::use_small_sizes();
    parameters().ranks_per_host = -1;  // a host is a NIC
    parameters().set_up_after = 0;
    for (int rank = 0; rank < size; ++rank) mpi_.communicator(rank).outlives_finalize = of_session;
    for (int rank = 0; rank < size; ++rank)
      states_.push_back(std::make_unique<CommunicatorState>(mpi_.communicator(rank)));
    EXPECT_EQ(attach(), MCAST_OK);
  }
  // Attaches to the fabric anew, and waits for the transport's thread. Calls that attach give the
  // thread 20 ms, and then use this outcome.
  static mcast_status_t attach() {
    std::string why;
    mcast_status_t status = MCAST_ERR_AGAIN;
    while (status == MCAST_ERR_AGAIN) status = Transport::instance().open(why, true);
    return status;
  }

  struct Memory {
    std::vector<std::byte> memory;
  };
  struct Started : Memory, Broadcast {
    explicit Started(std::byte value)
        : Memory{std::vector<std::byte>(100, value)},
          Broadcast(Payload(memory.data(), memory.size()), 0, [](Broadcast* broadcast, Code) {
            static_cast<Started*>(broadcast)->is_over = true;
          }) {}
    bool is_done() const { return is_over; }
    bool is_over = false;
  };
  Started& start(int rank, std::byte value) {
    started_.push_back(std::make_unique<Started>(rank == 0 ? value : std::byte{0xEE}));
    Started& it = *started_.back();
    const fake::Counting counted(true);
    fabric.caller = rank;
    state(rank).start(it);
    return it;
  }
  // A blocking one by the saved function.
  void call_saved(int rank) {
    std::byte memory[100];
    Broadcast broadcast(Payload(memory, sizeof memory), 0);
    fabric.caller = rank;
    ASSERT_TRUE(state(rank).may_serve(sizeof memory));
    ASSERT_EQ(state(rank).serve(broadcast), Code::kNotServed);
    ASSERT_FALSE(broadcast.why_saved.empty());
  }
  void look(int rank) {
    fabric.caller = rank;
    fabric.progress(rank);
    const fake::Counting counted(true);
    TurnQueue complete;
    state(rank).advance(complete);
    CommunicatorState::finish(complete);
    state(rank).watch();
  }
  bool has_messages_under_way() { return !mpi_.deliverable().empty(); }
  void deliver_messages() {
    for (auto all = mpi_.deliverable(); !all.empty(); all = mpi_.deliverable())
      mpi_.deliver(all.front());
  }
  void pass() {
    for (int i = 0; i < 200; ++i) {
      deliver_messages();
      for (const std::uint32_t end : fabric.registering()) fabric.conclude(end);
      for (auto ends = fabric.deliverable(); !ends.empty(); ends = fabric.deliverable())
        fabric.deliver(ends.front());
      for (int rank = 0; rank < size(); ++rank) look(rank);
    }
  }
  int size() const { return static_cast<int>(states_.size()); }
  // The program frees the communicator at all ranks.
  void free_all() {
    for (int rank = 0; rank < size(); ++rank) (void)state(rank).close();
    pass();
    for (int rank = 0; rank < size(); ++rank) {
      ASSERT_TRUE(state(rank).is_closed());
      state(rank).detach();
    }
  }
  // Rank `to` gets a control message, and can post no receive for the next one.
  void send_control(int from, int to) {
    refuse_control_receives();
    const ControlMessage message{};
    ASSERT_EQ(Messages::post(&message, sizeof message, to, Tag::kControl, team(from)), Code::kDone);
  }
  void refuse_control_receives() { mpi_.refused_tag = team(0).tag(Tag::kControl); }
  void take_receives() { mpi_.refused_tag.reset(); }
  long requests(int rank) { return mpi_.communicator(rank).requests(); }
  bool uses(const Started& it) const { return mpi_.uses(it.memory); }
  std::size_t sent_bytes(int rank) const { return mpi_.sent_bytes(rank); }
  CommunicatorState& state(int rank) { return *states_[static_cast<std::size_t>(rank)]; }

  fake::Fabric fabric;

 private:
  Team team(int rank) { return Team::all(mpi_.communicator(rank), host::Communicator{}.next_tag); }

  fake::Mpi mpi_;
  std::vector<std::unique_ptr<CommunicatorState>> states_;
  std::vector<std::unique_ptr<Started>> started_;
};

// Persistent broadcasts start without may_serve(). Two were started while the device was missing at
// rank 1. The second one has had its turn at the root alone when all ranks look again.
TEST(CommunicatorState, WhatWasStartedBeforeANewLookAtThePlacesGoesTheOldWay) {
  Ranks job(2);
  job.start(0, std::byte{1});
  job.fabric.is_port_up = false;
  job.fabric.on_open = [] { return MCAST_ERR_NO_DEVICE; };
  const Ranks::Started& pending = job.start(1, std::byte{1});
  ASSERT_EQ(Ranks::attach(), MCAST_ERR_NO_DEVICE);
  job.pass();
  ASSERT_TRUE(pending.is_done());
  for (int rank = 0; rank < 2; ++rank) job.call_saved(rank);

  Ranks::Started& first = job.start(1, std::byte{2});
  Ranks::Started& second = job.start(1, std::byte{3});
  Ranks::Started& sent_first = job.start(0, std::byte{2});
  Ranks::Started& sent_second = job.start(0, std::byte{3});
  job.deliver_messages();
  job.look(0);
  ASSERT_TRUE(sent_first.is_done());

  job.fabric.is_port_up = true;
  job.fabric.on_open = [] { return MCAST_OK; };
  ASSERT_EQ(Ranks::attach(), MCAST_OK);
  for (int rank = 0; rank < 2; ++rank) {
    int calls = 1;
    while (!job.state(rank).may_serve(100)) ++calls;
    EXPECT_EQ(calls, 64);
  }
  Ranks::Started& sent_third = job.start(0, std::byte{4});
  Ranks::Started& third = job.start(1, std::byte{4});
  job.pass();
  EXPECT_TRUE(sent_second.is_done() && sent_third.is_done());
  const auto expect_data = [](const Ranks::Started& it, std::byte value) {
    EXPECT_TRUE(it.is_done());
    EXPECT_EQ(it.memory, std::vector<std::byte>(100, value));
  };
  expect_data(first, std::byte{2});
  expect_data(second, std::byte{3});
  expect_data(third, std::byte{4});
  EXPECT_TRUE(job.state(0).has_groups());
}

// One rank starts other requests between the init and the call that looks again, another rank
// before.
TEST(CommunicatorState, LooksAgainInABroadcastAndNotInAPersistentRequest) {
  Ranks job(2);
  job.start(0, std::byte{1});
  job.fabric.is_port_up = false;
  job.fabric.on_open = [] { return MCAST_ERR_NO_DEVICE; };
  job.start(1, std::byte{1});
  ASSERT_EQ(Ranks::attach(), MCAST_ERR_NO_DEVICE);
  job.pass();
  for (int rank = 0; rank < 2; ++rank) job.call_saved(rank);

  for (int i = 0; i < 200; ++i) EXPECT_FALSE(job.state(0).may_serve_request());
  int calls = 1;
  while (!job.state(0).may_serve(100)) ++calls;
  EXPECT_EQ(calls, 64);
}

// No blocking broadcast comes, after which all ranks would know that there is no device.
TEST(CommunicatorState, LooksAgainIfAllBroadcastsAreNonBlocking) {
  Ranks job(2);
  job.start(0, std::byte{1});
  job.fabric.is_port_up = false;
  job.fabric.on_open = [] { return MCAST_ERR_NO_DEVICE; };
  job.start(1, std::byte{1});
  ASSERT_EQ(Ranks::attach(), MCAST_ERR_NO_DEVICE);
  job.pass();
  job.fabric.is_port_up = true;
  job.fabric.on_open = [] { return MCAST_OK; };
  ASSERT_EQ(Ranks::attach(), MCAST_OK);
  int calls = 0;
  for (; calls < 100 && !job.state(0).has_groups(); ++calls) {
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(job.state(rank).may_serve(100));
      job.start(rank, std::byte{2});
    }
    job.pass();
  }
  EXPECT_EQ(calls, 64);
  EXPECT_TRUE(job.state(1).has_groups());
}

// The first broadcast gathers the ranks' places and sets a group up. Rank 0 sends more for more
// ranks.
TEST(CommunicatorState, RankZeroSendsFewBytesPerRankForTheFirstBroadcast) {
  constexpr std::size_t kMostPerRank = 512;
  for (const int size : {16, 64, 128}) {
    SCOPED_TRACE(size);
    Ranks job(size);
    std::vector<const Ranks::Started*> all;
    for (int rank = 0; rank < size; ++rank) all.push_back(&job.start(rank, std::byte{1}));
    job.pass();
    for (const Ranks::Started* each : all)
      ASSERT_EQ(each->memory, std::vector<std::byte>(100, std::byte{1}));
    EXPECT_TRUE(job.state(0).has_groups());
    for (int rank = 0; rank < size; ++rank) {
      const std::size_t most = static_cast<std::size_t>(rank == 0 ? size : 16) * kMostPerRank;
      EXPECT_LE(job.sent_bytes(rank), most) << "rank " << rank;
    }
  }
}

// All ranks tear the groups down together: none may leave it out.
TEST(CommunicatorState, HasGroupsThoughItsReceiveIsNotPosted) {
  Ranks job(2);
  for (int rank = 0; rank < 2; ++rank) job.start(rank, std::byte{1});
  job.pass();
  ASSERT_TRUE(job.state(0).has_groups() && job.state(1).has_groups());
  job.send_control(0, 1);
  job.pass();
  EXPECT_TRUE(job.state(1).has_groups());
}

TEST(CommunicatorState, HasGroupsThoughItsFirstReceiveIsRefused) {
  Ranks job(2);
  job.refuse_control_receives();
  for (int rank = 0; rank < 2; ++rank) job.start(rank, std::byte{1});
  job.pass();
  EXPECT_TRUE(job.state(0).has_groups());
  EXPECT_TRUE(job.state(1).has_groups());
}

// Otherwise it would not notice that the fabric fails, and that another rank lacks data.
TEST(CommunicatorState, PostsItsControlReceiveAgainOnceTheHostTakesReceives) {
  Ranks job(2);
  for (int rank = 0; rank < 2; ++rank) job.start(rank, std::byte{1});
  job.pass();
  const long requests = job.requests(1);
  job.send_control(0, 1);
  job.pass();
  ASSERT_EQ(job.requests(1), requests - 1);
  job.take_receives();
  job.pass();
  EXPECT_EQ(job.requests(1), requests);
}

// A request that is complete and not freed would keep the communicator alive for ever.
TEST(CommunicatorState, HasNoRequestAfterItsEnd) {
  constexpr int kRanks = 3;
  Ranks job(kRanks);
  fake::use_safeguard();
  for (int i = 0; i < 60; ++i) {
    for (int rank = 0; rank < kRanks; ++rank) job.start(rank, std::byte{1});
    job.pass();
  }
  ASSERT_TRUE(job.state(0).has_groups());
  job.free_all();
  release_communicators();
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(job.requests(rank), 0) << "rank " << rank;
}

void free_watched(Ranks& job, bool is_in_progress) {
  for (int rank = 0; rank < job.size(); ++rank) {
    watch_communicator(job.state(rank));
    free_communicator(job.state(rank), is_in_progress);
  }
}

void expect_later_calls_close(Ranks& job) {
  for (int i = 0; i < 8; ++i) {
    fake::now() += std::chrono::microseconds(100);
    job.deliver_messages();
    release_communicators();
  }
  for (int rank = 0; rank < job.size(); ++rank) EXPECT_TRUE(job.state(rank).is_closed());
}

// Its ranks' groups may be gone already.
TEST(CommunicatorState, MpiServesBroadcastsAfterTheStartOfMpiFinalize) {
  Ranks job(2);
  for (int rank = 0; rank < job.size(); ++rank) watch_communicator(job.state(rank));
  ASSERT_TRUE(job.state(0).may_serve(100));
  finalize_communicators();
  EXPECT_TRUE(job.state(0).is_closed());
  EXPECT_FALSE(job.state(0).may_serve(100));
  EXPECT_FALSE(job.state(0).may_serve_request());
}

// MPI ends a session with communicators that the program has not freed.
TEST(CommunicatorState, NothingLooksAtOneWhoseObjectEnds) {
  Ranks job(2, true);
  CommunicatorState& state = job.state(0);
  watch_communicator(state);
  finalize_communicators();
  state.call();
  forget_communicator(state);
  for (int look = 0; look < 100; ++look) (void)progress_in_background();
  EXPECT_TRUE(state.take_call());
}

// Programs may free communicators faster than progress looks at each of them.
TEST(CommunicatorState, CallsOnOtherCommunicatorsEndThoseThatAreFreed) {
  constexpr int kRanks = 3, kCalls = 8;
  Ranks job(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) job.start(rank, std::byte{1});
  job.pass();
  ASSERT_TRUE(job.state(0).has_groups());
  free_watched(job, false);
  // Looks cost each call time, and a late rank may keep communicators for long.
  release_communicators();
  for (int i = 0; i < kCalls; ++i) {
    job.deliver_messages();
    release_communicators();
  }
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(job.state(rank).is_closed());
  expect_later_calls_close(job);
}

// MPICH 4.2 ends the program if its progress is called there.
TEST(CommunicatorState, SendsNothingWhenItIsFreedInsideMpisProgress) {
  constexpr int kRanks = 3;
  Ranks job(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) job.start(rank, std::byte{1});
  job.pass();
  ASSERT_TRUE(job.state(0).has_groups());
  free_watched(job, true);
  EXPECT_FALSE(job.has_messages_under_way());
  expect_later_calls_close(job);
}

// The CPU may not read a GPU's memory, but MPI may know how to send it.
TEST(CommunicatorState, LetsMpiReadSmallDataItselfIfTheRankHasAGpuRuntime) {
  const std::unique_ptr<void, int (*)(void*)> library(dlopen(FAKE_GPU_RUNTIME, RTLD_NOW), dlclose);
  ASSERT_NE(library, nullptr) << dlerror();
  Ranks job(2);
  const Ranks::Started& sent = job.start(0, std::byte{1});
  const Ranks::Started& received = job.start(1, std::byte{1});
  for (int i = 0; i < 2; ++i) {  // the places arrive, then the root sends
    job.deliver_messages();
    job.look(0);
  }
  EXPECT_TRUE(job.uses(sent));
  job.pass();
  EXPECT_TRUE(sent.is_done() && received.is_done());
  EXPECT_EQ(received.memory, sent.memory);
  EXPECT_FALSE(job.state(0).has_groups());
}

// Started ones, which each rank's progress serves.
TEST(CommunicatorState, AllocatesNothingForABroadcastOnceItHasServedSome) {
  constexpr int kRanks = 3, kWarmUp = 20, kCounted = 100;
  Ranks job(kRanks);
  std::size_t before = 0;
  for (int i = 0; i < kWarmUp + kCounted; ++i) {
    if (i == kWarmUp) before = fake::allocations();
    std::vector<const Ranks::Started*> all;
    for (int rank = 0; rank < kRanks; ++rank)
      all.push_back(&job.start(rank, static_cast<std::byte>(i)));
    job.pass();
    for (const Ranks::Started* each : all)
      ASSERT_EQ(each->memory, std::vector<std::byte>(100, static_cast<std::byte>(i)));
  }
  EXPECT_GT(before, 0u) << "setting groups up is counted";
  EXPECT_EQ(fake::allocations() - before, 0u);
}

}  // namespace
}  // namespace cepheus::coll
