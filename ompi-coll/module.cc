#include "ompi-coll/module.h"

#include <algorithm>
#include <new>

#include "ompi-coll/counters.h"
#include "ompi-coll/parameters.h"

using namespace cepheus::coll;

struct cepheus_module_t {
  mca_coll_base_module_t super;  // first: Open MPI casts
  mca_coll_base_module_bcast_fn_t saved_bcast;
  mca_coll_base_module_t* saved_module;
  mca_coll_base_module_ibcast_fn_t saved_ibcast;
  mca_coll_base_module_t* saved_ibcast_module;
  CommunicatorState* state;
};

static void construct_module(cepheus_module_t* module) {
  module->saved_bcast = nullptr;
  module->saved_module = nullptr;
  module->saved_ibcast = nullptr;
  module->saved_ibcast_module = nullptr;
  module->state = nullptr;
}

static void destruct_module(cepheus_module_t* module) {
  delete module->state;
  if (module->saved_module != nullptr) OBJ_RELEASE(module->saved_module);
  if (module->saved_ibcast_module != nullptr) OBJ_RELEASE(module->saved_ibcast_module);
}

OBJ_CLASS_DECLARATION(cepheus_module_t);
OBJ_CLASS_INSTANCE(cepheus_module_t, mca_coll_base_module_t, construct_module, destruct_module);

namespace cepheus::coll {

namespace {

extern "C" int cepheus_bcast(void* buffer, int count, ompi_datatype_t* type, int root,
                             ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  auto* module = reinterpret_cast<cepheus_module_t*>(base);
  Payload payload(buffer, static_cast<size_t>(count), type);
  if (payload.bytes() == 0) return OMPI_SUCCESS;
  size_t done = 0;
  int rc = module->state->broadcast(payload, root, done);
  if (rc != OMPI_ERR_NOT_AVAILABLE) return rc;
  counters().add(Counters::Which::kSaved);
  if (done == 0) return module->saved_bcast(buffer, count, type, root, comm, module->saved_module);
  // The fabric broke on the way: the rest as packed bytes, whatever the types.
  const bool is_root = ompi_comm_rank(comm) == root;
  while (done < payload.bytes()) {
    const size_t length = std::min(BulkOperation::kUnit, payload.bytes() - done);
    void* memory = payload.window(done, length);
    if (memory == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
    if (is_root && !payload.contiguous()) {
      rc = payload.pack(done, memory, length);
      if (rc != OMPI_SUCCESS) return rc;
    }
    rc = module->saved_bcast(memory, static_cast<int>(length), MPI_BYTE, root, comm,
                             module->saved_module);
    if (rc == OMPI_SUCCESS && !is_root) rc = payload.unpack(done, memory, length);
    if (rc != OMPI_SUCCESS) return rc;
    done += length;
  }
  return OMPI_SUCCESS;
}

extern "C" int cepheus_ibcast(void* buffer, int count, ompi_datatype_t* type, int root,
                              ompi_communicator_t* comm, ompi_request_t** request,
                              mca_coll_base_module_t* base) {
  auto* module = reinterpret_cast<cepheus_module_t*>(base);
  auto ibcast = std::make_unique<Ibcast>(buffer, static_cast<size_t>(count), type, root);
  if (ibcast->payload.bytes() == 0) {
    *request = &ompi_request_empty;
    return OMPI_SUCCESS;
  }
  const int rc = module->state->start(std::move(ibcast), request);
  if (rc != OMPI_ERR_NOT_AVAILABLE) return rc;
  counters().add(Counters::Which::kIbcastSaved);
  return module->saved_ibcast(buffer, count, type, root, comm, request,
                              module->saved_ibcast_module);
}

extern "C" int cepheus_module_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  auto* module = reinterpret_cast<cepheus_module_t*>(base);
  mca_coll_base_comm_coll_t* coll = comm->c_coll;
  if (coll->coll_bcast == nullptr || coll->coll_bcast_module == nullptr ||
      coll->coll_ibcast == nullptr || coll->coll_ibcast_module == nullptr)
    return OMPI_ERR_NOT_FOUND;
  module->saved_bcast = coll->coll_bcast;
  module->saved_module = coll->coll_bcast_module;
  OBJ_RETAIN(module->saved_module);
  module->saved_ibcast = coll->coll_ibcast;
  module->saved_ibcast_module = coll->coll_ibcast_module;
  OBJ_RETAIN(module->saved_ibcast_module);
  module->state = new (std::nothrow) CommunicatorState(comm);
  if (module->state == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  return watch_communicator(comm, module->state);
}

extern "C" int cepheus_module_disable(mca_coll_base_module_t*, ompi_communicator_t*) {
  return OMPI_SUCCESS;
}

}  // namespace

extern "C" mca_coll_base_module_t* cepheus_comm_query(ompi_communicator_t* comm, int* priority) {
  const Parameters& p = parameters();
  if (p.chosen_mode() == Mode::kOff || OMPI_COMM_IS_INTER(comm)) return nullptr;
  const int size = ompi_comm_size(comm);
  if (size < 2) return nullptr;
  if (size < p.min_members) {
    if (ompi_comm_rank(comm) == 0) {
      opal_output_verbose(1, output_stream(),
                          "cepheus: %s (%d ranks): open mpi's own algorithms: fewer than "
                          "coll_cepheus_min_members = %d",
                          comm->c_name, size, p.min_members);
    }
    return nullptr;
  }
  auto* module = OBJ_NEW(cepheus_module_t);
  if (module == nullptr) return nullptr;
  *priority = p.priority;
  module->super.coll_module_enable = cepheus_module_enable;
  module->super.coll_module_disable = cepheus_module_disable;
  module->super.coll_bcast = cepheus_bcast;
  module->super.coll_ibcast = cepheus_ibcast;
  return &module->super;
}

}  // namespace cepheus::coll
