// The counters of rare incidents. An observer of a switch should see at once that one of them has
// grown.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "switch-emulator/engine/counters.h"

namespace cepheus::fabric {

inline constexpr std::array kIncidents = {
    Counter::kTurns,
    Counter::kGateHeld,
    Counter::kGateLetThrough,
    Counter::kGateEmptied,
    Counter::kGateRnr,
    Counter::kGateGaveUp,
    Counter::kHandoverRnr,
    Counter::kHandoverGaveUp,
    Counter::kNewcomerNak,
    Counter::kPathsEvicted,
    Counter::kTrunkDark,
    Counter::kStaleTableAged,
    Counter::kMrpRegister,
    Counter::kMrpReject,
    Counter::kMrpActivate,
    Counter::kMrpUnregister,
    Counter::kMrpEvict,
    Counter::kMrpGiveUp,
    Counter::kMrpComplain,
    Counter::kRefusedQuota,
    Counter::kDropNoRoute,
    Counter::kDropDataWindow,
    Counter::kDropConflict,
    Counter::kDropCorrupt,
    Counter::kDropWriteRefused,
    Counter::kDropNotMember,
    Counter::kDropUnknownGroup,
    Counter::kDropNotMulticastable,
};

// In the same order.
inline std::vector<std::string> incident_names() {
  std::vector<std::string> names;
  for (const Counter c : kIncidents) names.emplace_back(name(c));
  return names;
}

}  // namespace cepheus::fabric
