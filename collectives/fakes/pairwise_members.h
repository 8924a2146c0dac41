// The members of one reduction by messages, over the fake of MPI. Messages arrive in a random order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <random>
#include <vector>

#include "collectives/fakes/caller.h"
#include "collectives/fakes/fake_mpi.h"
#include "collectives/units/pairwise_operation.h"

namespace cepheus::coll::fake {

class PairwiseMembers {
 public:
  PairwiseMembers(int members, unsigned seed) : mpi(members), random_(seed) {
    for (int i = 0; i < members; ++i) {
      teams_.push_back(Team::all(mpi.communicator(i), reserve_tags(mpi.communicator(i))));
      all_.emplace_back(teams_.back());
    }
    results_.resize(static_cast<std::size_t>(members));
  }

  // `vectors`: one for each member, where its operand is.
  void begin(std::vector<std::vector<std::byte>>& vectors,
             const PairwiseOperation::Vector& vector) {
    vectors_ = &vectors;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      PairwiseOperation::Vector own = vector;
      own.memory = vectors[i].data();
      all_[i].begin(own);
      results_[i] = Code::kPending;
    }
  }
  // Until nothing moves any more.
  void run() {
    for (int idle = 0; idle < 3; ++idle) {
      for (std::size_t i = 0; i < all_.size(); ++i) progress(i);
      for (auto messages = mpi.deliverable(); !messages.empty(); messages = mpi.deliverable()) {
        // The oldest of each sender and receiver, in descending order: half of them.
        for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
          if (messages.size() > 1 && random_() % 2 == 0) continue;
          longest_ = std::max(longest_, mpi.content(*it).size());
          mpi.deliver(*it);
          progress(random_() % all_.size());
        }
        idle = 0;
      }
    }
  }
  void finish() {
    for (PairwiseOperation& each : all_) each.finish();
  }
  PairwiseOperation& member(int i) { return all_[static_cast<std::size_t>(i)]; }
  void set_result(int i, Code rc) { results_[static_cast<std::size_t>(i)] = rc; }
  const std::vector<Code>& results() const { return results_; }
  const Team& team(int i) const { return teams_[static_cast<std::size_t>(i)]; }
  std::size_t longest() const { return longest_; }  // message: bytes

  Mpi mpi;

 private:
  void progress(std::size_t i) {
    if (results_[i] == Code::kPending) results_[i] = all_[i].progress();
    EXPECT_FALSE(mpi.uses((*vectors_)[i])) << "MPI may use the program's memory after an error";
  }

  std::vector<std::vector<std::byte>>* vectors_ = nullptr;
  std::mt19937 random_;
  std::deque<Team> teams_;
  std::deque<PairwiseOperation> all_;
  std::vector<Code> results_;
  std::size_t longest_ = 0;
};

}  // namespace cepheus::coll::fake
