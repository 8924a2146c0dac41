// The end of groups that were neither used nor refreshed for too long (docs/protocol.md,
// "Registration"): no leader ends them, so the switch does, in its name. Also the repeats of
// UNREGISTER that no leader sends.
#pragma once

#include <deque>
#include <vector>

#include "switch-emulator/engine/group_table.h"

namespace cepheus::fabric {

// A group that has ended at a switch, without its leader.
struct AgedGroup {
  McstId id;
  std::uint16_t epoch = 0;
  Leader leader;
  wire::MrpReject why = wire::MrpReject::kNone;
};

class Ageing {
 public:
  explicit Ageing(GroupTable& groups) : groups_(groups) {}

  // Frees the group, and informs the nodes behind this switch.
  void age(Call& call, McstId id);
  // The group has ended here: its switches behind get UNREGISTER again after half of the rest time,
  // unless all members confirm the leader's.
  void repeat_later(const Call& call, McstId id, wire::MrpReject why);
  void on_timer(Call& call);
  Instant deadline() const { return repeats_.empty() ? wire::kNever : repeats_.front().at; }

 private:
  void dissolve(Call& call, McstId id, wire::MrpReject why);

  GroupTable& groups_;
  // UNREGISTERs to be sent again, in the order of their times: at most max_tombstones.
  struct Repeat {
    Instant at;
    McstId id;
    std::uint16_t epoch = 0;
    wire::MrpReject why = wire::MrpReject::kNone;
  };
  std::deque<Repeat> repeats_;
};

}  // namespace cepheus::fabric
