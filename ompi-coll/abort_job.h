// Ends the job, in mode "require": multicast can't serve the communicator.
#pragma once

#include <string>

#include "ompi-coll/team.h"

namespace cepheus::coll {

[[noreturn]] void abort_job(const Team& team, const std::string& reason);

}  // namespace cepheus::coll
