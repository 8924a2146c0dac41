// "link" on the control socket: cuts or impairs a host's cable or a trunk while the fabric runs.
#pragma once

#include "switch-emulator/live/control_request.h"
#include "switch-emulator/live/datapath.h"
#include "wire/result.h"

namespace cepheus::live {

// {"link": "leaf0-spine0", "direction": "to-spine0", "loss": 0.2, "up": false}: missing keys change
// nothing, others are refused.
// "link" is a host's name, or a trunk's, made of its switches' names in either order;
// "leaf0-spine0#2" is the second between these two.
// "direction" is "both" by default, or "to-" and the name at one end; for a host's link also "up",
// away from it, or "down". Runs on the thread that polls the datapath.
wire::Result<void> set_link(Datapath& datapath, wire::Instant now, const LinkRequest& request);

}  // namespace cepheus::live
