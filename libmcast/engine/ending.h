// The status and the text with which a group ends at its members after its leader has ended it.
#pragma once

#include <string>

#include "libmcast/engine/failure.h"
#include "wire/mrp.h"

namespace cepheus::mcast {

struct Ending {
  mcast_status_t status;
  mcast_cause_t cause;
  std::string reason;  // lower case, names the remedy
};

// `leader` has ended it because of `why`.
Ending ending_of(bool was_active, wire::MrpReject why, wire::Ipv4 leader);

}  // namespace cepheus::mcast
