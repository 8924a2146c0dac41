#include "ompi-coll/fake_abort.h"

#include "ompi-coll/abort_job.h"

namespace cepheus::coll {

void abort_job(const Team& team, const std::string& reason) {
  throw fake::Aborted{ompi_comm_rank(team.comm()), reason};
}

}  // namespace cepheus::coll
