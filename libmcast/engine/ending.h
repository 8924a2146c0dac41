// How a group ends that its leader ended: what its members are told.
#pragma once

#include <string>

#include "libmcast/engine/failure.h"
#include "wire/mrp.h"

namespace cepheus::mcast {

struct Ending {
  mcast_status_t status;
  mcast_cause_t cause;
  std::string reason;  // lower case, says what to do next
};

// `leader` has ended it because of `why`.
Ending ending_of(bool was_active, wire::MrpReject why, wire::Ipv4 leader);

}  // namespace cepheus::mcast
