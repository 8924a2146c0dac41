// The ranks of a communicator that broadcast among themselves: all of them, those of one host, or
// one of each host. Members are numbered from 0; member 0 leads. Messages travel on the
// communicator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ompi-coll/ompi_headers.h"

namespace cepheus::coll {

class Team {
 public:
  // Member i is ranks[i] of `comm`.
  Team(ompi_communicator_t* comm, std::vector<int> ranks) : comm_(comm), ranks_(std::move(ranks)) {
    self_ = member_of(ompi_comm_rank(comm));
  }
  static Team all(ompi_communicator_t* comm) {
    std::vector<int> ranks(static_cast<std::size_t>(ompi_comm_size(comm)));
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
    return {comm, std::move(ranks)};
  }

  ompi_communicator_t* comm() const { return comm_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  int self() const { return self_; }  // -1: the caller is no member
  bool is_leader() const { return self_ == 0; }
  int rank_of(int member) const { return ranks_[static_cast<std::size_t>(member)]; }
  int member_of(int rank) const {  // -1: none
    if (rank >= 0 && rank < size() && rank_of(rank) == rank) return rank;
    const auto at = std::find(ranks_.begin(), ranks_.end(), rank);
    return at == ranks_.end() ? -1 : static_cast<int>(at - ranks_.begin());
  }
  // "MPI_COMM_WORLD (8 ranks)", "MPI_COMM_WORLD (2 of 8 ranks)"
  std::string name() const {
    const int all = ompi_comm_size(comm_);
    return std::string(comm_->c_name) + " (" +
           (size() == all ? "" : std::to_string(size()) + " of ") + std::to_string(all) + " ranks)";
  }

 private:
  ompi_communicator_t* comm_;
  std::vector<int> ranks_;
  int self_ = -1;
};

// The caller, for texts that others read.
inline std::string rank_text(const Team& team) {
  return "rank " + std::to_string(ompi_comm_rank(team.comm()));
}

}  // namespace cepheus::coll
