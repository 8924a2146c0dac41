// Counters since a moment: "reset" without touching the counters themselves, which engines and
// links own.
#pragma once

#include "switch-emulator/live/status.h"

namespace cepheus::live {

// Takes what `baseline` counted off `status`; gauges stay. Both are of the same fabric, and
// `baseline` is the older one.
void subtract(FabricStatus& status, const FabricStatus& baseline);

}  // namespace cepheus::live
