// Several ranks on one host: one of them, its leader, is a member of the group; the others get the
// data inside the host, by Open MPI's own algorithms. What a host is, the NIC's GID says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ompi-coll/ompi_headers.h"
#include "ompi-coll/payload.h"

namespace cepheus::coll {

class Hierarchy {
 public:
  // All ranks of `comm` together, from within a broadcast. OMPI_SUCCESS with an empty `out`: each
  // rank has a host of its own. OMPI_ERR_NOT_AVAILABLE: multicast makes no sense, see `why`.
  static int make(ompi_communicator_t* comm, std::unique_ptr<Hierarchy>& out, std::string& why);
  // While the communicator can communicate, by all ranks in the same order.
  void free();

  int broadcast(Payload& payload, int root);
  int hosts() const { return hosts_; }

 private:
  struct Place {  // of a rank
    int host;     // index
    int local;    // rank within the host; 0: its leader
  };
  Hierarchy() = default;
  static int everywhere(ompi_communicator_t* comm, void* memory, std::size_t length, int root);

  int rank_ = 0;
  int hosts_ = 0;
  std::vector<Place> places_;
  ompi_communicator_t* inside_ = MPI_COMM_NULL;   // the ranks of this host
  ompi_communicator_t* leaders_ = MPI_COMM_NULL;  // of all hosts, in order; null if not one of them
};

}  // namespace cepheus::coll
