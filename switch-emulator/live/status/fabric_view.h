// Data for a picture of a running fabric: the topology with the present rate of each cable, its
// groups with lagging members, and counters, from two snapshots of its status.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "switch-emulator/live/status/status.h"

namespace cepheus::live {

struct Snapshot {
  FabricStatus status;
  double seconds = 0;  // on any clock
};

// Rates are those between `before` and `now`; 0 without `before`, or if counters were reset or the
// fabric restarted meanwhile.
//
// {"uptime_seconds", "pid",
//  "switches": [{"name", "floor"}],
//  "cables":   [{"from": switch, "to": switch or -1, "name", "link": as `cepheusctl link` wants it,
//                "state": "up"|"dark"|"cut", "loss", "out_bps", "in_bps", "payload_bytes",
//                "host": {"address", "pid", "attached"} or null}],     out: away from "from"
//  "groups":   [{"id", "source", "leader", "next_source": names, "cables": [indices], "members",
//                "bps", "behind": {"names", "packets", "late_ns": of a reduction},
//                "failure": why a reduction group has failed, or "", "nak_held"}],
//  "sent_bps", "delivered_bps": payload of all hosts,
//  "counters": [{"name", "help", "kind": "counter"|"gauge", "unit": "bytes"|"us"|"", "total",
//                "per_second", "is_drop"}]}     every reading (readings.h) that is not 0
nlohmann::json fabric_view(const Snapshot& now, const Snapshot* before);

}  // namespace cepheus::live
