// The blocks of all members to all members by the host's own messages, in ceil(log2 N) rounds. It serves
// reductions that the network can't serve. Ranks learn at different times that a call goes this way, and
// MPI's collectives must start in one order on all ranks: so the saved function can't serve them.
//
// Source: Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport
// Message-Passing Systems" (1997): in round k a member sends its first 2^k blocks to the member 2^k
// before it. With blocks of one byte that is a dissemination barrier.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "collectives/group/messages.h"

namespace cepheus::coll {

class ExchangeOperation {
 public:
  // Forgets the last one. `bytes`: of each member's block, one at least; the same list on all members.
  // It stays until the end. `own`: this member's block.
  void begin(const Team& team, const std::vector<std::size_t>& bytes, const std::byte* own);
  // Code::kPending: call again.
  Code progress();
  // Once it is done: the blocks in the order of members.
  void copy_to(std::byte* memory) const;
  // After an error: the member to which a message, or from which one, failed.
  int failed_member() const { return failed_member_; }
  // It is over: forgets its messages under way.
  void finish();

 private:
  int member(int place) const { return (team_->self() + place) % team_->size(); }
  std::size_t bytes_between(int first, int end) const;
  Code start_round();

  const Team* team_ = nullptr;
  const std::vector<std::size_t>* bytes_ = nullptr;
  // By place: of this member, of the next member, and so on.
  std::vector<std::byte> blocks_;
  int here_ = 0;  // places that are here
  std::size_t here_bytes_ = 0;
  bool is_in_round_ = false;
  // By round: its send. That of round k goes to the member 2^k before this one.
  std::deque<Messages> sends_;
  std::size_t rounds_ = 0;  // that have begun
  std::size_t sent_ = 0;    // of which the sends are complete
  Messages receive_;
  int failed_member_ = 0;
};

}  // namespace cepheus::coll
