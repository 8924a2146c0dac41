// A request has the memory for its call, so start() allocates nothing but what packing needs.
// States: inactive, active, complete; a persistent one becomes active again by MPI_Start. A
// broadcast without bytes is complete at once.
//
// complete() may call back into MPI, and holds no lock. Refused: cancelling, and freeing a request
// that is not complete. The communicator is held until the request is freed.
#include "ompi-coll/request.h"

#include <algorithm>
#include <new>

#include "collectives/broadcast.h"
#include "ompi-coll/buffer.h"
#include "ompi-coll/codes.h"

using namespace cepheus::ompi;
using cepheus::coll::Broadcast;
using cepheus::coll::Code;
using cepheus::coll::CommunicatorState;
using cepheus::coll::Reduction;

struct cepheus_request_t;

namespace {

// Before the call's own object, which refers to it.
template <typename Memory>
struct MemoryOf {
  cepheus_request_t& request;
  Memory memory;
};

template <typename Running, typename Call>
void complete(Call* call, Code code);

struct RunningBroadcast : MemoryOf<Buffer>, Broadcast {
  RunningBroadcast(cepheus_request_t& of, const BroadcastCall& call)
      : MemoryOf<Buffer>{of, Buffer(call.elements)},
        Broadcast(memory.payload(), call.root, complete<RunningBroadcast>) {}
  static constexpr Code call_error = Code::kDone;
};
struct RunningReduction : MemoryOf<ReductionMemory>, Reduction {
  RunningReduction(cepheus_request_t& of, const ReductionCall& call)
      : MemoryOf<ReductionMemory>{of, ReductionMemory(call)},
        Reduction(call.shape, memory.data(), complete<RunningReduction>),
        call_error(call.error) {}
  const Code call_error;
};

}  // namespace

// MPI_Ibcast and its kin hold datatypes and operations until the request is complete or freed. They
// keep them in the request, which they take for an ompi_coll_base_nbc_request_t. The header of that type
// (ompi/mca/coll/base/coll_base_util.h) includes some that are not installed. libmpi exports its
// class.
struct cepheus_request_t {
  ompi_request_t super;  // first: Open MPI casts
  void* callback;
  void* callback_data;
  void* held[10];  // Open MPI 4.1 has 2
  // Our own fields.
  CommunicatorState* state;
  bool is_persistent;
  BroadcastCall call;  // of a persistent one
  alignas(std::max(alignof(RunningBroadcast), alignof(RunningReduction)))
      std::byte running[std::max(sizeof(RunningBroadcast), sizeof(RunningReduction))];
};

namespace {

// May call back into MPI: nothing is held.
template <typename Running, typename Call>
void complete(Call* call, Code code) {
  auto* const running = static_cast<Running*>(call);
  ompi_request_t* const request = &running->request.super;
  if (code == Code::kDone) code = running->call_error;
  running->~Running();
  request->req_status.MPI_ERROR = ompi_errcode_get_mpi_code(from_code(code));  // programs read it
  ompi_request_complete(request, true);
}

template <typename Running, typename Call>
void start(cepheus_request_t& request, const Call& call) {
  request.super.req_status.MPI_ERROR = MPI_SUCCESS;
  request.super.req_complete = REQUEST_PENDING;
  request.super.req_state = OMPI_REQUEST_ACTIVE;
  request.state->start(*new (request.running) Running(request, call));
}

}  // namespace

extern "C" opal_class_t ompi_coll_base_nbc_request_t_class;

extern "C" int cepheus_request_free(ompi_request_t** request) {
  if (!REQUEST_COMPLETE(*request)) return MPI_ERR_REQUEST;
  auto* const made = reinterpret_cast<cepheus_request_t*>(*request);
  ompi_communicator_t* comm = made->super.req_mpi_object.comm;
  if (made->is_persistent) OBJ_RELEASE(made->call.elements.type);
  OMPI_REQUEST_FINI(*request);
  OBJ_RELEASE(*request);
  OBJ_RELEASE(comm);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

// MPI-3.1 5.12: non-blocking collectives can't be cancelled.
extern "C" int cepheus_request_cancel(ompi_request_t*, int) { return MPI_ERR_REQUEST; }

// MPI_Start and MPI_Startall.
extern "C" int cepheus_request_start(size_t count, ompi_request_t** requests) {
  for (size_t i = 0; i < count; ++i) {
    auto* const made = reinterpret_cast<cepheus_request_t*>(requests[i]);
    const Elements& elements = made->call.elements;
    if (bytes_of(elements.count, elements.type) == 0) {
      made->super.req_state = OMPI_REQUEST_ACTIVE;  // complete from the beginning
    } else {
      start<RunningBroadcast>(*made, made->call);
    }
  }
  return OMPI_SUCCESS;
}

static void construct_request(cepheus_request_t* request) {
  ompi_request_t& base = request->super;
  base.req_type = OMPI_REQUEST_COLL;
  base.req_start = cepheus_request_start;
  base.req_free = cepheus_request_free;
  base.req_cancel = cepheus_request_cancel;
}

OBJ_CLASS_DECLARATION(cepheus_request_t);
OBJ_CLASS_INSTANCE(cepheus_request_t, ompi_coll_base_nbc_request_t, construct_request, nullptr);

namespace cepheus::ompi {

bool requests_fit() {
  return ompi_coll_base_nbc_request_t_class.cls_sizeof <= offsetof(cepheus_request_t, state);
}

namespace {

cepheus_request_t* make(CommunicatorState& state, bool persistent) {
  auto* made = OBJ_NEW(cepheus_request_t);
  if (made == nullptr) return nullptr;
  ompi_request_t* const request = &made->super;
  OMPI_REQUEST_INIT(request, persistent);
  request->req_status = {MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_SUCCESS, 0, 0};
  request->req_mpi_object.comm = communicator(state.comm());
  OBJ_RETAIN(request->req_mpi_object.comm);  // its error handler serves MPI_Wait
  made->state = &state;
  made->is_persistent = persistent;
  return made;
}

template <typename Running, typename Call>
ompi_request_t* make_and_start(CommunicatorState& state, const Call& call) {
  cepheus_request_t* const made = make(state, false);
  if (made == nullptr) return nullptr;
  start<Running>(*made, call);
  return &made->super;
}

}  // namespace

ompi_request_t* start_request(CommunicatorState& state, const BroadcastCall& call) {
  return make_and_start<RunningBroadcast>(state, call);
}

ompi_request_t* start_request(CommunicatorState& state, const ReductionCall& call) {
  return make_and_start<RunningReduction>(state, call);
}

ompi_request_t* make_persistent_request(CommunicatorState& state, const BroadcastCall& call) {
  cepheus_request_t* const made = make(state, true);
  if (made == nullptr) return nullptr;
  made->call = call;
  OBJ_RETAIN(call.elements.type);
  return &made->super;
}

}  // namespace cepheus::ompi
