// The reason of a failed work request, for users: the verbs status and its usual cause in a group.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace cepheus::mcast {

std::string work_failure_text(ibv_wc_status status, bool is_receive);

}  // namespace cepheus::mcast
