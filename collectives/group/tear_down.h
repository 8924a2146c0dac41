// The end of a team's groups, in two rounds, so that no member leaves while another waits for its
// acknowledgement: all have drained -> the leader announces that -> all destroy their groups. Waits
// for the last member for any time, and never blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/group/messages.h"
#include "collectives/group/team.h"

namespace cepheus::coll {

class TearDown {
 public:
  explicit TearDown(const Team& team) : team_(team) {}

  // `is_drained`: nothing that this member sent may be missing anywhere. True once that holds for
  // all members. `may_leave`: there may be messages of this member, or for it, that no call receives.
  bool progress(bool is_drained, bool may_leave);
  // Then: `may_leave` of any member, the same on all.
  bool may_leave() const { return flags_.front() != 0; }

 private:
  enum class State : std::uint8_t { kDraining, kGathering, kReleasing, kDone };

  const Team& team_;
  State state_ = State::kDraining;
  std::vector<char> flags_{0};  // `may_leave` by member; the leader's is that of all
  Messages messages_;
};

}  // namespace cepheus::coll
