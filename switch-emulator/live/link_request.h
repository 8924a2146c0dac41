// "link" on the control socket: a host's cable is pulled, or made worse, while the fabric runs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "switch-emulator/live/datapath.h"
#include "wire/result.h"

namespace cepheus::live {

// {"host": "h1", "direction": "down"|"up"|"both", "loss": 0.2, "duplicate": 0, "reorder": 0,
// "corrupt": 0,
//  "up": false}: what is not said stays as it is; "direction" is "both" if not said.
wire::Result<void> set_link(Datapath& datapath, const nlohmann::json& request);

}  // namespace cepheus::live
