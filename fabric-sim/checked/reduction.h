// A seed's plan without some of its parts: a smaller scenario, named by what it lacks.
//
// As text: h3-5 hosts 3 to 5 of the plan, s1 a switch with its hosts and trunks, t2 a trunk, g0 a
// group, m0.4 message 4 of group 0, i1 an incident; loss, duplicate, reorder, corrupt, cut; packets:
// what messages have beyond one packet. Numbers are those of the seed's whole plan.
#pragma once

#include <compare>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fabric-sim/checked/scenario_plan.h"
#include "wire/result.h"

namespace cepheus::sim {

enum class PartKind : std::uint8_t {  // in the order in which it pays to leave them out
  kIncident,
  kCut,
  kGroup,
  kSwitch,
  kHost,
  kMessage,
  kTrunk,
  kDuplicate,
  kReorder,
  kCorrupt,
  kLoss,
  kPackets
};

struct Part {
  PartKind kind = PartKind::kIncident;
  std::size_t number = 0;
  std::size_t group = 0;  // of a message
  auto operator<=>(const Part&) const = default;
};
using Reduction = std::set<Part>;

// All that may be left out of it.
std::vector<Part> parts_of(const ScenarioPlan& plan);

// Hosts take what they send with them, and incidents of their own; a group that has lost its
// leader is led by another, one of a single member goes. kInvalid, with the reason, if a part is
// none of the plan's, or what is left is no scenario: without a group, or with hosts that a cut
// leaves no shortest way between.
wire::Result<ScenarioPlan> without(const ScenarioPlan& plan, const Reduction& reduction);

// The same without what goes with other parts anyway: hosts and trunks of a switch, messages of a
// host or a group.
Reduction essential(const ScenarioPlan& plan, const Reduction& reduction);

std::string to_text(const Reduction& reduction);
wire::Result<Reduction> reduction_from(std::string_view text);

}  // namespace cepheus::sim
