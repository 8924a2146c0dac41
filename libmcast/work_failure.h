// Why a work request failed, for people: the verbs status and what it usually means in a group.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace cepheus::mcast {

std::string work_failure_text(ibv_wc_status status, bool is_receive);

}  // namespace cepheus::mcast
