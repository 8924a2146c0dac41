#include "ompi-coll/abort_job.h"

#include <cstdio>
#include <cstdlib>

namespace cepheus::coll {

void abort_job(const Team& team, const std::string& reason) {
  // Straight to standard error: help texts that travel through mpirun get lost when the abort
  // overtakes them.
  char* text = opal_show_help_string("help-coll-cepheus.txt", "require", 1, team.comm()->c_name,
                                     ompi_comm_size(team.comm()), reason.c_str());
  if (text != nullptr) fputs(text, stderr);
  free(text);
  fflush(stderr);
  ompi_rte_abort(1, nullptr);
  _exit(1);
}

}  // namespace cepheus::coll
