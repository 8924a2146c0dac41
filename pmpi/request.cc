// MPI owns the generalized request and the call owns its run; the last of both frees the memory. The
// buffers go first, when the call is over, because MPICH forbids calls of MPI while it frees a
// request. Datatypes and operations are held, since the program may free them at once.
//
// A thread that has called set_failure() gets a failure there; else MPI reports it to
// MPI_COMM_WORLD. Cancelling is refused.
#include "pmpi/request.h"

#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "collectives/broadcast.h"
#include "pmpi/calls.h"
#include "pmpi/codes.h"

namespace cepheus::pmpi {

using coll::Broadcast;
using coll::Code;
using coll::Reduction;

namespace {

std::atomic<int> in_flight{0};
thread_local Failure* failure_of_thread = nullptr;

// From the call until it is over and MPI has freed the request. MPI_Request_free, which programs shall
// not call for it, comes first.
struct Shared {
  explicit Shared(const Communicator& communicator) : comm(communicator.programs) {}
  const SharedComm comm;
  Request handle = kRequestNull;
  std::atomic<int> owners{2};
};

template <typename Running>
int release(void* state) {
  auto* const running = static_cast<Running*>(state);
  if (running->owners.fetch_sub(1) == 1) delete running;
  return kSuccess;
}

// Requests in flight are counted until they are complete: MPI_Waitall of MPICH 4.0 ends the job if it
// has to wait for one.
template <typename Running, typename Call>
void complete(Call* call, Code) {
  auto* const running = static_cast<Running*>(call);
  running->memory.reset();
  (void)calls().Grequest_complete(running->handle);
  in_flight.fetch_sub(1);
  (void)release<Running>(running);
}

// Gone when the call is over: MPICH lets no function of ours call MPI while it frees a request.
template <typename Memory>
struct MemoryOf {
  std::optional<Memory> memory;
};
struct RunningBroadcast : MemoryOf<Buffer>, Broadcast, Shared {
  RunningBroadcast(const BroadcastCall& call, const Communicator& communicator)
      : MemoryOf<Buffer>{std::optional<Buffer>(std::in_place, call.elements)},
        Broadcast(memory->payload(), call.root, complete<RunningBroadcast>),
        Shared(communicator) {
    memory->hold();
  }
  static constexpr Code call_error = Code::kDone;
};
struct RunningReduction : MemoryOf<ReductionMemory>, Reduction, Shared {
  RunningReduction(const ReductionCall& call, const Communicator& communicator)
      : MemoryOf<ReductionMemory>{std::optional<ReductionMemory>(std::in_place, call)},
        Reduction(call.shape, memory->data(), complete<RunningReduction>),
        Shared(communicator),
        call_error(call.error) {
    memory->hold([](auto& part) { part.hold(); });
  }
  const Code call_error;
};

template <typename Running>
int query(void* state, Status* status) {
  *status = Status{};
  status->source = kAnySource;  // as of MPICH's own collectives
  status->tag = kAnyTag;
  const auto& running = *static_cast<Running*>(state);
  const Code code = running.outcome == Code::kDone ? running.call_error : running.outcome;
  const Failure failure{from_code(code), *running.comm};
  if (failure.error == kSuccess || failure.comm == kCommNull || failure_of_thread == nullptr)
    return failure.error;
  *failure_of_thread = failure;
  return kSuccess;
}

// MPI-4.0 6.12: non-blocking collectives can't be cancelled.
int refuse_cancel(void*, int) { return kErrRequest; }

template <typename Running, typename Call>
int start(Communicator& communicator, const Call& call, Request& out) {
  auto* const running = new (std::nothrow) Running(call, communicator);
  if (running == nullptr) return kErrNoMem;
  const int rc = calls().Grequest_start(query<Running>, release<Running>, refuse_cancel, running,
                                        &running->handle);
  if (rc != kSuccess) {
    delete running;
    return rc;
  }
  out = running->handle;
  in_flight.fetch_add(1);
  communicator.state->start(*running);
  return kSuccess;
}

}  // namespace

int start_request(Communicator& communicator, const BroadcastCall& call, Request& out) {
  return start<RunningBroadcast>(communicator, call, out);
}

int start_request(Communicator& communicator, const ReductionCall& call, Request& out) {
  return start<RunningReduction>(communicator, call, out);
}

void set_failure(Failure* failure) { failure_of_thread = failure; }

bool is_in_flight() { return in_flight.load(std::memory_order_acquire) > 0; }

}  // namespace cepheus::pmpi
