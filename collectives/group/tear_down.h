// The end of a team's groups, in two rounds, so that no member leaves while another waits for its
// acknowledgement: all are ready -> the leader announces that -> all destroy their groups. Waits
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

  // `is_ready`: nothing that this member sent may be missing anywhere, or be under way. True once
  // that holds for all members.
  bool progress(bool is_ready);

 private:
  enum class State : std::uint8_t { kDraining, kGathering, kReleasing, kDone };

  const Team& team_;
  State state_ = State::kDraining;
  std::vector<char> bytes_;  // of the messages, which have one each
  Messages messages_;
};

}  // namespace cepheus::coll
