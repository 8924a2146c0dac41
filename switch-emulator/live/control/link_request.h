// "link" on the control socket: cuts or impairs a host's cable or a trunk while the fabric runs.
#pragma once

#include <cstdint>
#include <vector>

#include "switch-emulator/live/control/control_request.h"
#include "switch-emulator/live/datapath/datapath.h"
#include "wire/result.h"

namespace cepheus::live {

// {"link": "leaf0-spine0", "direction": "to-spine0", "loss": 0.2, "up": false}: missing keys change
// nothing, others are refused.
// "link" is a host's name, or a trunk's, made of its switches' names in either order;
// "leaf0-spine0#2" is the second between these two.
// "direction" is "both" by default, or "to-" and the name at one end; for a host's link also "up",
// away from it, or "down".

// The links that the request names. It reads only names and numbers, which never change: packets
// need not wait for it.
wire::Result<std::vector<std::uint32_t>> find_links(const Datapath& datapath,
                                                    const LinkRequest& request);
// Changes these links as requested. Runs on the thread that polls the datapath.
void set_links(Datapath& datapath, wire::Instant now, const std::vector<std::uint32_t>& links,
               const LinkRequest& request);

}  // namespace cepheus::live
