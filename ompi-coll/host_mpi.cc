// collectives/host_mpi.h on Open MPI's internals. A request is Open MPI's own object, so nothing is
// allocated for one. Messages go straight to the PML, on tags of the communicator's non-blocking
// collectives. A notice runs inside Open MPI's progress, where it must not call MPI.
//
// abort_job() prints to standard error itself and never returns. Tags repeat after 2^30
// collectives.
#include "collectives/host_mpi.h"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "collectives/communicators.h"
#include "ompi-coll/codes.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll::host {

using namespace ompi;

namespace {

ompi_request_t* ours(Request* request) { return reinterpret_cast<ompi_request_t*>(request); }
const ompi_request_t* ours(const Request* request) {
  return reinterpret_cast<const ompi_request_t*>(request);
}

// 0: there was nothing to do, and Open MPI gives the core away (mpi_yield_when_idle).
extern "C" int cepheus_progress(void) { return progress_in_background() ? 1 : 0; }

}  // namespace

// --- Communicators.

int rank(const Communicator& comm) { return ompi_comm_rank(communicator(comm)); }
int size(const Communicator& comm) { return ompi_comm_size(communicator(comm)); }
std::string name(const Communicator& comm) { return communicator(comm)->c_name; }
bool outlives_finalize(const Communicator& comm) { return is_of_session(communicator(comm)); }
bool is_dynamic(const Communicator& comm) { return OMPI_COMM_IS_DYNAMIC(communicator(comm)); }

bool shares_machine(const Communicator& comm, int rank) {
  const ompi_proc_t* proc = ompi_comm_peer_lookup(communicator(comm), rank);
  return OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
}

PlaceInJob place_in_job(const Communicator& comm, int rank) {
  const opal_process_name_t name =
      ompi_group_get_proc_name(communicator(comm)->c_local_group, rank);
  return {name.jobid, name.vpid};
}

// Like Open MPI's non-blocking collectives: no other component uses these tags. Tags repeat after
// 2^30 non-blocking collectives on one communicator. Open MPI's persistent collectives have the
// same bound.
int reserve_tags(Communicator& comm, int count) {
  return __atomic_fetch_sub(&communicator(comm)->c_nbc_tag, count, __ATOMIC_RELAXED);
}

// Messages match by the context id, too, which ranks take for a new communicator only where none of them
// has it in use. MPI_Finalize counts dynamic communicators that are in use, and those that are not
// freed: they must be the same.
void retire_tags(Communicator& comm) {
  if (!is_dynamic(comm)) retain(comm);
}

void retain(Communicator& comm) { OBJ_RETAIN(communicator(comm)); }

void release(Communicator& comm) { ompi::release(communicator(comm)); }

// Straight to standard error: help texts that travel through mpirun get lost when the abort
// overtakes them.
void abort_job(const Communicator& comm, const std::string& reason) {
  char* text = opal_show_help_string("help-coll-cepheus.txt", "require", 1, name(comm).c_str(),
                                     size(comm), reason.c_str());
  if (text != nullptr) fputs(text, stderr);
  ::free(text);
  fflush(stderr);
  ompi_rte_abort(1, nullptr);
  _exit(1);
}

// --- Messages.

Code send(Communicator& comm, const void* data, std::size_t size, int to, int tag, Request*& out) {
  ompi_request_t* request = nullptr;
  const int rc = MCA_PML_CALL(isend(const_cast<void*>(data), size, MPI_BYTE, to, tag,
                                    MCA_PML_BASE_SEND_STANDARD, communicator(comm), &request));
  if (rc == OMPI_SUCCESS) out = reinterpret_cast<Request*>(request);
  return to_code(rc);
}

Code receive(Communicator& comm, void* data, std::size_t size, int from, int tag, Request*& out) {
  ompi_request_t* request = nullptr;
  const int source = from == kAnyRank ? MPI_ANY_SOURCE : from;
  const int rc =
      MCA_PML_CALL(irecv(data, size, MPI_BYTE, source, tag, communicator(comm), &request));
  if (rc == OMPI_SUCCESS) out = reinterpret_cast<Request*>(request);
  return to_code(rc);
}

// Open MPI reads the flag without an order, and another thread may have completed the request: its status
// and its data are to be read behind the flag.
bool is_complete(const Request& request) {
  if (!REQUEST_COMPLETE(ours(&request))) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

Received received(const Request& request) {
  const ompi_status_public_t& status = ours(&request)->req_status;
  return {to_code(status.MPI_ERROR), status.MPI_SOURCE, status._ucount};
}

void on_complete(Request& request, Notice& notice) {
  const auto run = [](ompi_request_t* complete) {
    auto* const self = static_cast<Notice*>(complete->req_complete_cb_data);
    self->run(self);
    return 0;
  };
  (void)ompi_request_set_callback(ours(&request), run, &notice);
}

void cancel(Request& request) {
  ours(&request)->req_complete_cb = nullptr;
  if (!is_complete(request)) ompi_request_cancel(ours(&request));
}

void free(Request* request) {
  ompi_request_t* object = ours(request);
  ompi_request_free(&object);
}

// --- The process.

const char* implementation() { return "open mpi"; }
std::string parameter(const char* name) { return std::string("coll_cepheus_") + name; }
bool knows_device_memory() { return kKnowsAccelerators; }
void progress() { opal_progress(); }
void start_background_progress() { (void)opal_progress_register(cepheus_progress); }
void stop_background_progress() { (void)opal_progress_unregister(cepheus_progress); }

void log(int level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  opal_output_vverbose(level, output_stream(), format, arguments);
  va_end(arguments);
}

}  // namespace cepheus::coll::host
