#include "ompi-coll/hierarchy.h"

#include <algorithm>
#include <map>

#include "ompi-coll/bulk_operation.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/transport.h"

namespace cepheus::coll {

namespace {

// What a rank tells all others.
struct Identity {
  uint64_t host;  // equal: the same host
  int32_t can_lead;
  int32_t reserved;
};

Identity own_identity(ompi_communicator_t* comm) {
  const int ranks_per_host = parameters().ranks_per_host;
  if (ranks_per_host > 0) {
    const opal_process_name_t& name = ompi_proc_local()->super.proc_name;
    const auto per_host = static_cast<uint32_t>(ranks_per_host);
    return {uint64_t{1} << 63 | uint64_t{name.jobid} << 31 | name.vpid / per_host,
            name.vpid % per_host == 0, 0};
  }
  std::string why;
  Transport& transport = Transport::instance();
  transport.add_group();  // none; it keeps the port open meanwhile
  const mcast_status_t status = transport.open(why, false);
  const uint32_t address = transport.host_address();
  transport.remove_group();
  if (address != 0) return {address, status == MCAST_OK, 0};
  return {uint64_t{1} << 62 | static_cast<uint64_t>(ompi_comm_rank(comm)), 0, 0};
}

}  // namespace

int Hierarchy::make(ompi_communicator_t* comm, std::unique_ptr<Hierarchy>& out, std::string& why) {
  const int size = ompi_comm_size(comm);
  const int rank = ompi_comm_rank(comm);
  Identity own = own_identity(comm);
  std::vector<Identity> all(static_cast<std::size_t>(size));
  mca_coll_base_comm_coll_t* const coll = comm->c_coll;
  int rc = coll->coll_allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, comm,
                                coll->coll_allgather_module);
  if (rc != OMPI_SUCCESS) return rc;

  std::map<uint64_t, int> hosts;  // by first appearance
  std::vector<int> leaders, sizes;
  for (int r = 0; r < size; ++r) {
    const auto [at, fresh] = hosts.emplace(all[static_cast<std::size_t>(r)].host, hosts.size());
    if (fresh) {
      leaders.push_back(r);
      sizes.push_back(0);
    } else if (all[static_cast<std::size_t>(r)].can_lead != 0) {
      int& leader = leaders[static_cast<std::size_t>(at->second)];
      if (all[static_cast<std::size_t>(leader)].can_lead == 0) leader = r;
    }
  }
  if (hosts.size() == 1) {
    why = "all ranks are on one host";
    return OMPI_ERR_NOT_AVAILABLE;
  }
  if (hosts.size() == static_cast<std::size_t>(size)) return OMPI_SUCCESS;

  std::unique_ptr<Hierarchy> made(new Hierarchy);
  made->rank_ = rank;
  made->hosts_ = static_cast<int>(hosts.size());
  for (int r = 0; r < size; ++r) {
    const int host = hosts[all[static_cast<std::size_t>(r)].host];
    int& others = sizes[static_cast<std::size_t>(host)];
    const bool leads = leaders[static_cast<std::size_t>(host)] == r;
    made->places_.push_back({host, leads ? 0 : ++others});
  }
  const Place& place = made->places_[static_cast<std::size_t>(rank)];
  rc = ompi_comm_split(comm, place.host, place.local, &made->inside_, false);
  if (rc == OMPI_SUCCESS) {
    rc = ompi_comm_split(comm, place.local == 0 ? 0 : MPI_UNDEFINED, place.host, &made->leaders_,
                         false);
  }
  if (rc == OMPI_SUCCESS) out = std::move(made);
  return rc;
}

void Hierarchy::free() {
  for (ompi_communicator_t** comm : {&leaders_, &inside_}) {
    if (*comm != MPI_COMM_NULL) ompi_comm_free(comm);
    *comm = MPI_COMM_NULL;
  }
}

int Hierarchy::everywhere(ompi_communicator_t* comm, void* memory, std::size_t length, int root) {
  if (ompi_comm_size(comm) == 1) return OMPI_SUCCESS;
  return comm->c_coll->coll_bcast(memory, static_cast<int>(length), MPI_BYTE, root, comm,
                                  comm->c_coll->coll_bcast_module);
}

// Packed bytes at every step: the ranks' types may differ.
int Hierarchy::broadcast(Payload& payload, int root) {
  const Place& mine = places_[static_cast<std::size_t>(rank_)];
  const Place& source = places_[static_cast<std::size_t>(root)];
  // A root that is no leader gives its host the data first, its leader among them.
  const bool first_inside = mine.host == source.host && source.local != 0;
  for (std::size_t done = 0; done < payload.bytes();) {
    const std::size_t length = std::min(BulkOperation::kUnit, payload.bytes() - done);
    void* const memory = payload.window(done, length);
    if (memory == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = OMPI_SUCCESS;
    if (rank_ == root && !payload.contiguous()) rc = payload.pack(done, memory, length);
    if (rc == OMPI_SUCCESS && first_inside) rc = everywhere(inside_, memory, length, source.local);
    if (rc == OMPI_SUCCESS && mine.local == 0)
      rc = everywhere(leaders_, memory, length, source.host);
    if (rc == OMPI_SUCCESS && !first_inside) rc = everywhere(inside_, memory, length, 0);
    if (rc == OMPI_SUCCESS && rank_ != root) rc = payload.unpack(done, memory, length);
    if (rc != OMPI_SUCCESS) return rc;
    done += length;
  }
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
