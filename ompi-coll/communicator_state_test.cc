#include "ompi-coll/communicator_state.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ompi-coll/fake_fabric.h"
#include "ompi-coll/fake_job.h"
#include "ompi-coll/fake_open_mpi.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/request.h"
#include "ompi-coll/transport.h"

namespace cepheus::coll {
namespace {

// Ranks that each have a NIC. Rank 0 is the root of all broadcasts.
class Ranks {
 public:
  explicit Ranks(int size) : open_mpi_(size) {
    fake::start_progress();
    fake::use_small_sizes();
    parameters().ranks_per_host = -1;  // a host is a NIC
    parameters().set_up_after = 0;
    for (int rank = 0; rank < size; ++rank)
      states_.push_back(std::make_unique<CommunicatorState>(open_mpi_.communicator(rank)));
    std::string why;
    while (Transport::instance().open(why, true) != MCAST_OK) {
    }
  }

  struct Started {
    std::vector<std::byte> memory;
    ompi_request_t request;
    bool is_done() const { return REQUEST_COMPLETE(&request); }
  };
  Started& start(int rank, std::byte value) {
    started_.push_back(std::make_unique<Started>());
    Started& it = *started_.back();
    it.request.req_complete = REQUEST_PENDING;
    it.memory.assign(100, rank == 0 ? value : std::byte{0xEE});
    auto broadcast =
        std::make_unique<Broadcast>(it.memory.data(), 100, &ompi_mpi_byte.dt, 0, false);
    broadcast->request = &it.request;
    fabric.caller = rank;
    state(rank).start(std::move(broadcast));
    return it;
  }
  // A blocking one that the saved module serves.
  void call_saved(int rank) {
    std::byte memory[100];
    Broadcast broadcast(memory, sizeof memory, &ompi_mpi_byte.dt, 0, true);
    fabric.caller = rank;
    ASSERT_TRUE(state(rank).may_serve(sizeof memory));
    ASSERT_EQ(state(rank).serve(broadcast), OMPI_ERR_NOT_AVAILABLE);
  }
  void look(int rank) {
    fabric.caller = rank;
    fabric.progress(rank);
    std::vector<Finished> finished;
    state(rank).advance(finished);
    for (const Finished& each : finished) complete_request(each.request, each.rc);
    state(rank).watch();
  }
  void deliver_messages() {
    for (auto all = open_mpi_.deliverable(); !all.empty(); all = open_mpi_.deliverable())
      open_mpi_.deliver(all.front());
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
  std::size_t sent_bytes(int rank) const { return open_mpi_.sent_bytes(rank); }
  CommunicatorState& state(int rank) { return *states_[static_cast<std::size_t>(rank)]; }

  fake::Fabric fabric;

 private:
  fake::OpenMpi open_mpi_;
  std::vector<std::unique_ptr<CommunicatorState>> states_;
  std::vector<std::unique_ptr<Started>> started_;
};

// Persistent broadcasts ask nobody whether they are served. Two were started while the device was
// missing at rank 1, and the second one's turn has come at the root alone when all ranks look again.
TEST(CommunicatorState, WhatWasStartedBeforeANewLookAtThePlacesGoesTheOldWay) {
  Ranks job(2);
  job.start(0, std::byte{1});
  job.fabric.is_port_up = false;
  job.fabric.on_open = [] { return MCAST_ERR_NO_DEVICE; };
  const Ranks::Started& settling = job.start(1, std::byte{1});
  job.pass();
  ASSERT_TRUE(settling.is_done());
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

// The first broadcast gathers the ranks' places and sets a group up. What rank 0 sends grows as the
// number of ranks does.
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

}  // namespace
}  // namespace cepheus::coll
