#include "ompi-coll/request.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "ompi-coll/communicator_state.h"

using namespace cepheus::coll;

// MPI_Ibcast and MPI_Bcast_init themselves hold the datatype until the request is complete or freed,
// and keep it in the request, which they take for an ompi_coll_base_nbc_request_t. The header that
// declares that one (ompi/mca/coll/base/coll_base_util.h) includes some that are not installed;
// libmpi exports its class.
struct cepheus_request_t {
  ompi_request_t super;  // first: Open MPI casts
  void* callback;
  void* callback_data;
  void* held[10];  // Open MPI 4.1 has 2
  // What follows is ours: a persistent one's.
  CommunicatorState* state;
  PersistentCall call;
};
extern "C" opal_class_t ompi_coll_base_nbc_request_t_class;

extern "C" int cepheus_request_free(ompi_request_t** request) {
  if (!REQUEST_COMPLETE(*request)) return MPI_ERR_REQUEST;
  auto* const made = reinterpret_cast<cepheus_request_t*>(*request);
  if (made->state != nullptr) OBJ_RELEASE(made->call.type);
  OMPI_REQUEST_FINI(*request);
  OBJ_RELEASE(*request);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

// MPI-3.1 5.12: non-blocking collectives can't be cancelled.
extern "C" int cepheus_request_cancel(ompi_request_t*, int) { return MPI_ERR_REQUEST; }

// MPI_Start and MPI_Startall.
extern "C" int cepheus_request_start(size_t count, ompi_request_t** requests) {
  for (size_t i = 0; i < count; ++i) {
    auto* const made = reinterpret_cast<cepheus_request_t*>(requests[i]);
    ompi_request_t& base = made->super;
    const PersistentCall& call = made->call;
    auto broadcast =
        std::make_unique<Broadcast>(call.buffer, call.count, call.type, call.root, false);
    if (broadcast->payload.bytes() == 0) {
      base.req_state = OMPI_REQUEST_ACTIVE;
      continue;  // complete from the beginning
    }
    base.req_status.MPI_ERROR = MPI_SUCCESS;
    base.req_complete = REQUEST_PENDING;
    base.req_state = OMPI_REQUEST_ACTIVE;
    broadcast->request = &base;
    made->state->start(std::move(broadcast));
  }
  return OMPI_SUCCESS;
}

static void construct_request(cepheus_request_t* request) {
  ompi_request_t& base = request->super;
  base.req_type = OMPI_REQUEST_COLL;
  base.req_start = cepheus_request_start;
  base.req_free = cepheus_request_free;
  base.req_cancel = cepheus_request_cancel;
  request->state = nullptr;
}

OBJ_CLASS_DECLARATION(cepheus_request_t);
OBJ_CLASS_INSTANCE(cepheus_request_t, ompi_coll_base_nbc_request_t, construct_request, nullptr);

namespace cepheus::coll {

bool requests_fit() {
  return ompi_coll_base_nbc_request_t_class.cls_sizeof <= offsetof(cepheus_request_t, state);
}

namespace {

cepheus_request_t* make(ompi_communicator_t* comm, bool persistent) {
  auto* made = OBJ_NEW(cepheus_request_t);
  if (made == nullptr) return nullptr;
  ompi_request_t* const request = &made->super;
  OMPI_REQUEST_INIT(request, persistent);
  request->req_status = {MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS, 0, 0};
  request->req_mpi_object.comm = comm;
  return made;
}

}  // namespace

ompi_request_t* make_request(ompi_communicator_t* comm) {
  cepheus_request_t* const made = make(comm, false);
  if (made == nullptr) return nullptr;
  made->super.req_state = OMPI_REQUEST_ACTIVE;
  return &made->super;
}

ompi_request_t* make_persistent_request(CommunicatorState& state, const PersistentCall& call) {
  cepheus_request_t* const made = make(state.comm(), true);
  if (made == nullptr) return nullptr;
  made->state = &state;
  made->call = call;
  OBJ_RETAIN(call.type);
  return &made->super;
}

void complete_request(ompi_request_t* request, int rc) {
  request->req_status.MPI_ERROR = rc;
  ompi_request_complete(request, true);
}

}  // namespace cepheus::coll
