// The communicator states of a job's ranks, as a host drives them, over the fakes of MPI and of a fabric.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/communicator_state.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/caller.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_mpi.h"
#include "collectives/group/transport.h"

namespace cepheus::coll {

class StateStory : public testing::Test {
 protected:
  explicit StateStory(int ranks) : mpi(ranks), ranks_(ranks) {}

  void SetUp() override {
    fake::use_small_sizes();
    parameters().ranks_per_host = -1;  // a host is a NIC
    parameters().set_up_after = 0;
    make_states();
    std::string why;
    mcast_status_t status = MCAST_ERR_AGAIN;
    while (status == MCAST_ERR_AGAIN) status = Transport::instance().open(why, true);
    ASSERT_EQ(status, MCAST_OK);
  }
  void TearDown() override {
    end_states();
    parameters() = {};
  }
  void make_states() {
    for (int rank = 0; rank < ranks_; ++rank)
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
  CommunicatorState& state(int rank) { return *states[static_cast<std::size_t>(rank)]; }

  // The rank may be refused receives of this tag of its communicator.
  virtual bool is_refused(int) const { return false; }
  virtual Tag refused_tag() const { return Tag::kPlan; }
  // Calls from here on are those of `rank`.
  void act_as(int rank) {
    fabric.caller = rank;
    mpi.refused_tag.reset();
    if (is_refused(rank))
      mpi.refused_tag =
          Team::all(mpi.communicator(rank), host::Communicator{}.next_tag).tag(refused_tag());
  }
  void start(int rank, Turn& turn) {
    act_as(rank);
    state(rank).start(turn);
  }
  // Messages that may arrive.
  virtual std::vector<std::size_t> on_time() const { return mpi.deliverable(); }
  void move() {
    for (auto all = on_time(); !all.empty(); all = on_time()) mpi.deliver(all.front());
    fabric.move_all();
  }
  void pass() {
    for (int i = 0; i < 300; ++i) {
      move();
      for (int rank = 0; rank < ranks_; ++rank) {
        act_as(rank);
        fabric.progress(rank);
        TurnQueue complete;
        state(rank).advance(complete);
        CommunicatorState::finish(complete);
        state(rank).watch();
      }
    }
  }

  fake::Mpi mpi;
  fake::Fabric fabric;
  std::vector<std::unique_ptr<CommunicatorState>> states;

 private:
  const int ranks_;
};

}  // namespace cepheus::coll
