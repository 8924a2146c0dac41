// The user's settings: the environment variable CEPHEUS_NAME for the MCA parameter coll_cepheus_name,
// CEPHEUS_MPI_VERBOSE for coll_cepheus_verbose.
#pragma once

#include <string>

namespace cepheus::pmpi {

// Fills coll::parameters() in. A value that can't be read, or is beyond its range, is an error line,
// and the default holds.
void read_parameters();
// "CEPHEUS_MIN_MEMBERS" for "min_members".
std::string variable_of(const char* name);

}  // namespace cepheus::pmpi
