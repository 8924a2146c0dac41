// The end of a team's groups, in two rounds, so that nobody leaves while another still waits for
// its acknowledgement: all have drained -> the leader says so -> groups may go. Waits for the last
// member however late it comes, and never blocks.
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
  // all members.
  bool progress(bool is_drained);

 private:
  enum class State : std::uint8_t { kDraining, kGathering, kReleasing, kDone };

  const Team& team_;
  State state_ = State::kDraining;
  std::vector<char> flags_;  // what travels: nothing but its arrival counts
  Messages messages_;
};

}  // namespace cepheus::coll
