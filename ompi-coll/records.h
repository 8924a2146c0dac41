// Compares what the ranks of a communicator have published (record.h).
#pragma once

#include "ompi-coll/record.h"

namespace cepheus::ompi {

void publish_settings();
// Every rank runs this version of Cepheus with this rank's shared settings: all ranks find the same. If
// not, one rank prints why, or ends the job if the user requires multicast. Sends no message.
bool ranks_match(ompi_communicator_t* comm);

}  // namespace cepheus::ompi
