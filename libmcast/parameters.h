// The C API's parameter structs, checked and converted. A caller built with an older header passes
// a shorter struct: missing fields keep their defaults.
#pragma once

#include "libmcast/context.h"
#include "libmcast/failure.h"
#include "libmcast/group.h"

namespace cepheus::mcast {

Expected<ContextConfig> context_config(const mcast_context_params_t* params);
Expected<GroupConfig> group_config(const mcast_group_params_t* params, const Device& device);

}  // namespace cepheus::mcast
