// A seed's plan without some of its parts: a smaller scenario, named by the missing parts.
//
// As text: h3-5 hosts 3 to 5 of the plan, s1 a switch with its hosts and trunks, t2 a trunk, g0 a
// group, m0.4 message 4 of group 0, i1 an incident; loss, duplicate, reorder, corrupt, cut;
// packets: the packets of messages beyond their first. Numbers are those of the seed's whole plan.
#pragma once

#include <compare>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fabric-sim/checked/scenario_plan.h"
#include "wire/result.h"

namespace cepheus::sim {

enum class PartKind : std::uint8_t {  // in the order in which their removal helps
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
using OmittedParts = std::set<Part>;

// All removable parts of the plan.
std::vector<Part> parts_of(const ScenarioPlan& plan);

// A host's removal also removes its messages and incidents. A group that has lost its leader gets
// another; a group of one member is removed. kInvalid, with the reason, if a part does not belong
// to the plan, or if the rest is no scenario: without a group, or with hosts that a cut leaves
// without a shortest path.
wire::Result<ScenarioPlan> without(const ScenarioPlan& plan, const OmittedParts& omitted);

// The same without parts that other parts include: hosts and trunks of a switch, messages of a host
// or a group.
OmittedParts essential(const ScenarioPlan& plan, const OmittedParts& omitted);

std::string to_text(const OmittedParts& omitted);
wire::Result<OmittedParts> omitted_from(std::string_view text);

}  // namespace cepheus::sim
