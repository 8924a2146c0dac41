// Where packets go: from a program's ibv_ah_attr to the engine's words.
#pragma once

#include <infiniband/verbs.h>

#include "nic-emulator/engine/verbs_types.h"
#include "nic-emulator/verbs/engine_names.h"

namespace cepheus::verbs {

// Null and `out` filled, or what is wrong with the attributes. RoCE needs a GRH with a mapped IPv4
// address; LIDs, service levels and flow labels mean nothing here and are not looked at.
const char* to_engine(const ibv_ah_attr& attributes, AddressVector& out);

}  // namespace cepheus::verbs
