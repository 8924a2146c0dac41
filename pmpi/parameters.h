// The user's settings: the environment variable CEPHEUS_NAME for the MCA parameter coll_cepheus_name,
// CEPHEUS_MPI_VERBOSE for coll_cepheus_verbose. And whether all ranks have the same.
#pragma once

#include <string>

namespace cepheus::pmpi {

// Fills coll::parameters() in. A value that can't be read, or is beyond its range, is an error line,
// and the default holds.
void read_parameters();
// "CEPHEUS_MIN_MEMBERS" for "min_members".
std::string variable_of(const char* name);

// All ranks of MPI_COMM_WORLD are served, or none.
struct Verdict {
  bool is_off = false;       // on all ranks, because some have mode off
  std::string why_not = "";  // empty: all ranks are served
  bool is_first_rank = false;
};
// Inside MPI_Init, on all ranks, also on those with mode off. `is_able`: this rank may be served. Later
// again, on all ranks: whether each still is.
Verdict agree(bool is_off, bool is_able);

}  // namespace cepheus::pmpi
