// The ranks of a communicator that serve its collectives among themselves: all of them, those of one host, or
// one of each host. Members are numbered from 0; member 0 leads. Messages travel on the
// communicator, on tags that it has reserved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "collectives/host_mpi.h"

namespace cepheus::coll {

// The purpose of a message between members.
enum class Tag : int {
  kSetUp,
  kOutcome,
  kReady,
  kDone,
  kRelease,
  kControl,
  kRepair,
  kTree,
  kRefusal,
  kArrange,
  kPlaces,
  kTimes,  // and the next one: the safeguard's
  kPlan,
  kReductionSetUp,  // of its own: after an error a set-up may have messages that nobody takes
  kReductionOutcome,
  kReductionControl,
  kReductionResult,
  kBlocks,
  kPairs,
  kCount
};

// One of the communicator's tags for each Tag; see host::reserve_tags().
inline int reserve_tags(host::Communicator& comm) {
  return host::reserve_tags(comm, static_cast<int>(Tag::kCount));
}

class Team {
 public:
  static constexpr int kLeader = 0;  // member

  // `first_tag`: from reserve_tags().
  static Team all(host::Communicator& comm, int first_tag) {
    return {comm, {}, host::size(comm), first_tag};
  }
  // Member i is ranks[i].
  Team part(std::vector<int> ranks) const {
    const auto size = static_cast<int>(ranks.size());
    return {*comm_, std::move(ranks), size, first_tag_};
  }

  host::Communicator& comm() const { return *comm_; }
  int tag(Tag tag) const { return first_tag_ - static_cast<int>(tag); }
  int size() const { return size_; }
  int self() const { return self_; }  // -1: the caller is not a member
  bool is_leader() const { return self_ == kLeader; }
  int rank_of(int member) const {
    return ranks_.empty() ? member : ranks_[static_cast<std::size_t>(member)];
  }
  int member_of(int rank) const {  // -1: none
    if (rank >= 0 && rank < size() && rank_of(rank) == rank) return rank;
    const auto at = std::find(ranks_.begin(), ranks_.end(), rank);
    return at == ranks_.end() ? -1 : static_cast<int>(at - ranks_.begin());
  }
  // "MPI_COMM_WORLD (8 ranks)", "MPI_COMM_WORLD (2 of 8 ranks)"
  std::string name() const {
    const int all = host::size(*comm_);
    return host::name(*comm_) + " (" + (size() == all ? "" : std::to_string(size()) + " of ") +
           std::to_string(all) + " ranks)";
  }

 private:
  Team(host::Communicator& comm, std::vector<int> ranks, int size, int first_tag)
      : comm_(&comm), ranks_(std::move(ranks)), size_(size), first_tag_(first_tag) {
    self_ = member_of(host::rank(comm));
  }

  host::Communicator* comm_;
  std::vector<int> ranks_;  // empty: member i is rank i
  int size_;
  int first_tag_;
  int self_ = -1;
};

// The caller, for texts that others read.
inline std::string rank_text(const Team& team) {
  return "rank " + std::to_string(host::rank(team.comm()));
}

}  // namespace cepheus::coll
