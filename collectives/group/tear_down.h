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
  // all members.
  bool progress(bool is_drained);

 private:
  enum class State : std::uint8_t { kDraining, kGathering, kReleasing, kDone };

  const Team& team_;
  State state_ = State::kDraining;
  std::vector<char> flags_;  // the content of messages: only their arrival counts
  Messages messages_;
};

}  // namespace cepheus::coll
