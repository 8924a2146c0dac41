// Either all ranks of MPI_COMM_WORLD are served or none: all must be able, with equal settings.
#pragma once

#include <string>

namespace cepheus::pmpi {

struct Verdict {
  bool is_off = false;       // on all ranks, because some have mode off
  std::string why_not = "";  // empty: all ranks are served
  bool is_first_rank = false;
};
// Inside MPI_Init, on all ranks, also on those with mode off. `is_able`: this rank may be served. Later
// again, on all ranks: whether each still is.
Verdict agree(bool is_off, bool is_able);

}  // namespace cepheus::pmpi
