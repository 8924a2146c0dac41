// Destinations of packets: from a program's ibv_ah_attr to the engine's type.
#pragma once

#include <infiniband/verbs.h>

#include "nic-emulator/engine/verbs_types.h"
#include "nic-emulator/verbs/engine_names.h"

namespace cepheus::verbs {

// Fills `out` and returns null, or returns the error in the attributes. RoCE needs a GRH with a
// mapped IPv4 address. LIDs, service levels and flow labels are ignored.
const char* to_engine(const ibv_ah_attr& attributes, AddressVector& out);

}  // namespace cepheus::verbs
