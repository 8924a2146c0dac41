// Members of reduction groups that others wait for, over all switches of a fabric.
//
// A switch knows of a unit once a member behind it has contributed. So a member that is late to a
// unit may be named only by comparing its switch with others:
//
//   newest unit that any switch knows > member's next unit   -> the member is late to that one
//   first contribution to it at any switch                   -> since then
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "switch-emulator/live/status/status.h"

namespace cepheus::live {

// Contributions that are missing for a shorter time may be under way.
inline constexpr wire::Duration kLeastLate = std::chrono::milliseconds(1);

// Switches know groups and units. Processes alone know the communicator and the call of a unit
// (support/reports); their names would go here.
struct LateMember {
  wire::McstId group;
  std::uint16_t epoch = 0;
  std::uint64_t unit = 0;   // the oldest one that it has not contributed to
  std::uint64_t units = 0;  // that others have contributed to, and it has not
  std::string name;  // a host's, or a trunk's: it leads to a switch that is not in the status
  wire::Ipv4 host;   // unset: a trunk's
  std::string at;    // the member's switch
  wire::Duration late{};
  // The others' contributions, the earliest first: "8 bytes to a sum of int64". Several: they differ.
  // Empty: no switch shows one.
  std::string others;
};

// A group that has failed at a switch: its leader has to end it, and nobody is late.
struct FailedGroup {
  wire::McstId group;
  std::uint16_t epoch = 0;
  std::string at;   // the switch
  std::string why;  // "members that reduce different things"
};

// Of one group, whether late or only under way. None if it has failed at a switch.
std::vector<LateMember> missing_members(const FabricStatus& status, wire::McstId group,
                                        std::uint16_t epoch);
// Of all groups: those that are late for kLeastLate or longer. The latest one comes first.
std::vector<LateMember> late_members(const FabricStatus& status);
// None: it has not failed.
std::optional<FailedGroup> failure_of(const FabricStatus& status, wire::McstId group,
                                      std::uint16_t epoch);

// {"late": [{"group", "epoch", "unit", "units", "name", "host": "" if it is a trunk, "switch",
//            "late_ns", "since_utc_ns": since 1970, "others"}],
//  "failed": [{"group", "epoch", "switch", "reason"}]}
nlohmann::json late_json(const FabricStatus& status);
// A line for each of them, in local time, and for each group that has failed; or that nobody is late.
std::string late_text(const FabricStatus& status, bool colour);
// "12.3 s", "50.0 ms"
std::string late_time_text(wire::Duration late);

}  // namespace cepheus::live
