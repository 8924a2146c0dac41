// The end of groups that were neither used nor refreshed for too long (docs/protocol.md,
// "Registration"): no leader ends them, so the switch does, in its name.
#pragma once

#include <deque>
#include <vector>

#include "switch-emulator/engine/group_table.h"

namespace cepheus::fabric {

// A group that a switch has freed without its leader.
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
  void on_timer(Call& call);
  Instant deadline() const { return repeats_.empty() ? wire::kNever : repeats_.front().at; }

 private:
  void dissolve(Call& call, McstId id, wire::MrpReject why);

  GroupTable& groups_;
  // UNREGISTERs to be sent again, in the order of their times: at most max_groups in each
  // orphan_age.
  struct Repeat {
    Instant at;
    AgedGroup group;
    std::vector<PortId> ports;
  };
  std::deque<Repeat> repeats_;
};

}  // namespace cepheus::fabric
