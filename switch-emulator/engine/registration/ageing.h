// The end of groups that were neither used nor refreshed for too long (docs/protocol.md,
// "Registration"): no leader ends them, so the switch does, in its name. Also the repeats of
// UNREGISTER over trunks. No leader sends these to a switch of evicted members: it names none of them.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "switch-emulator/engine/group_table.h"

namespace cepheus::fabric {

// A group that has ended at a switch, and why.
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
  // The group has ended here. Switches behind it get UNREGISTER again, in each quarter of the rest time,
  // until a member behind them has confirmed it.
  void repeat_later(Call& call, McstId id, wire::MrpReject why);
  // A newer epoch replaces the group: frees it. Switches that are not in the newer tree get UNREGISTER
  // at those times.
  void replace(Call& call, McstId id);
  // A newer epoch has ended, and all its REGISTERs to this switch were lost: frees the older group, and
  // informs the nodes behind this switch.
  void end_older(Call& call, McstId id);
  void on_timer(Call& call);
  Instant deadline() const { return repeats_.empty() ? wire::kNever : repeats_.front().at; }

 private:
  static constexpr int kRepeats = 3;

  // UNREGISTERs to be sent again.
  struct Repeat {
    Instant at;
    AgedGroup group;
    std::vector<PortId> trunks;
    int left = kRepeats;
  };
  void dissolve(Call& call, McstId id, wire::MrpReject why);
  void add(Call& call, const AgedGroup& group, std::span<const PortId> ports);
  void add_again(const Call& call, Repeat repeat);
  bool needs(const AgedGroup& group, PortId trunk) const;
  bool send(Call& call, Repeat& repeat) const;

  GroupTable& groups_;
  std::deque<Repeat>
      repeats_;  // all wait equally long, so they are in order; at most max_tombstones
};

}  // namespace cepheus::fabric
