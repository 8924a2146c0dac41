// MPI's functions that this library defines in front of MPI: programs that preload it call these.
//
// All other work goes to the next definition, which is another tool's or MPI's, by the arguments as
// they came. A handle is a word here: MPICH's handles are ints, those of an MPI that is not served
// are pointers.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include "collectives/bcast.h"
#include "collectives/communicators.h"
#include "collectives/core/parameters.h"
#include "collectives/group/transport.h"
#include "pmpi/agreement.h"
#include "pmpi/background.h"
#include "pmpi/buffer.h"
#include "pmpi/calls.h"
#include "pmpi/codes.h"
#include "pmpi/communicator.h"
#include "pmpi/parameters.h"
#include "pmpi/request.h"

#define CEPHEUS_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace cepheus::pmpi;
using namespace cepheus::coll;

using Handle = std::uintptr_t;

std::atomic<bool> serves{false};  // between MPI_Init and MPI_Finalize

// MPI deletes the attributes of MPI_COMM_SELF first in MPI_Finalize, while messages still flow.
int on_finalize(Comm, int, void*, void*) {
  serves = false;
  close_communicators();
  end_background_progress();
  Transport::instance().close();
  return kSuccess;
}

bool watch_finalize() {
  int keyval = kKeyvalInvalid;
  return calls().Comm_create_keyval(nullptr, on_finalize, &keyval, nullptr) == kSuccess &&
         calls().Comm_set_attr(kCommSelf, keyval, nullptr) == kSuccess;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(next_definition(name));
}

std::string why_unable(bool has_calls, int level) {
  if (!has_calls) return "it has not the ABI of MPICH, or is too old";
  if (level < kThreadMultiple) return "it gave no MPI_THREAD_MULTIPLE";
  // Ranks may use different types of one signature: packed data must be the bare bytes.
  constexpr int kCount = 7;
  int bytes = 0;
  if (calls().Pack_size(kCount, kInt, kCommSelf, &bytes) != kSuccess ||
      bytes != kCount * static_cast<int>(sizeof(int)))
    return "its packed data is not the bare bytes";
  return "";
}

// MPI is initialised. All ranks come here, because one alone would wait for the others for ever.
void begin(bool has_calls, int level) {
  const bool is_off = parameters().chosen_mode() == Mode::kOff;
  std::string why = is_off ? "" : why_unable(has_calls, level);
  bool reports_reason = true;
  if (has_calls) {
    const Verdict verdict = agree(is_off, why.empty());
    if (verdict.is_off) return;
    if (why.empty()) {
      why = verdict.why_not;
      reports_reason = verdict.is_first_rank;
    }
    if (why.empty() && !(open_communicators() && watch_finalize())) why = "a function of it failed";
  }
  serves = why.empty() && !is_off;
  if (serves || is_off) return;
  const bool required = parameters().chosen_mode() == Mode::kRequire;
  if (required || reports_reason)
    host::log(required ? 0 : 1, "cepheus: this MPI library serves all broadcasts: %s", why.c_str());
  if (required) exit(1);
}

// The type is committed. Reports nothing to the program.
bool is_ready(Datatype type) {
  int bytes = 0;
  return calls().Pack_size(0, type, own_communicator(), &bytes) == kSuccess;
}

// MPI_BOTTOM is null. A type has its data elsewhere only if its true lower bound says so.
bool has_memory(const void* memory, Datatype type) {
  if (memory != nullptr) return reinterpret_cast<std::intptr_t>(memory) != kInPlace;
  Count lower_bound = 0, extent = 0;
  return calls().Type_get_true_extent_x(type, &lower_bound, &extent) == kSuccess &&
         lower_bound != 0;
}

// Whether these are arguments that broadcasts may have. MPI reports those that are not.
bool is_usual(const void* memory, Count count, Datatype type, int root, int size) {
  return count > 0 && count <= std::numeric_limits<int>::max() && root >= 0 && root < size &&
         is_ready(type) && has_memory(memory, type);
}

// Null: MPI serves the call. Else it has these bytes, one at least.
Communicator* find_served(BroadcastCall& call, Comm comm) {
  if (!serves || comm == kCommNull || call.type == kDatatypeNull) return nullptr;
  Communicator* const communicator = communicator_of(comm);
  if (communicator == nullptr || !communicator->state ||
      !is_usual(call.memory, call.count, call.type, call.root, communicator->size))
    return nullptr;
  Count size = 0;
  if (calls().Type_size_x(call.type, &size) != kSuccess || size <= 0) return nullptr;
  call.bytes = static_cast<std::size_t>(size) * static_cast<std::size_t>(call.count);
  return call.bytes <= std::numeric_limits<int>::max() ? communicator : nullptr;
}

int report(int error, Comm comm) {
  if (error != kSuccess) (void)calls().Comm_call_errhandler(comm, error);
  return error;
}

template <typename Saved>
int broadcast(BroadcastCall call, Comm comm, Saved saved) {
  Communicator* const communicator = find_served(call, comm);
  if (communicator == nullptr) return saved();
  std::optional<Buffer> buffer;
  std::optional<int> saved_rc;
  const Code code = bcast(
      *communicator->state, call.bytes, call.root,
      [&] {
        make_private(*communicator, comm);
        return buffer.emplace(call, communicator->messages).payload();
      },
      [&] {
        saved_rc = saved();
        return to_code(*saved_rc);
      });
  if (saved_rc) return *saved_rc;
  return report(from_code(code), comm);
}

// Other ranks may be late: nothing here waits for them, nor makes a private communicator.
template <typename Saved>
int start_broadcast(BroadcastCall call, Comm comm, Request* request, Saved saved) {
  Communicator* const communicator = request != nullptr ? find_served(call, comm) : nullptr;
  if (communicator == nullptr) return saved();
  CommunicatorState& state = *communicator->state;
  if (communicator->messages == kCommNull) {
    state.count_saved(false, {ReportFile::instance().begin_call(), call.bytes, call.root},
                      "an MPI_Ibcast before the communicator's first MPI_Bcast");
    return saved();
  }
  if (!ibcast_is_served(state, call.bytes, call.root)) return saved();
  return report(start_request(*communicator, call, *request), comm);
}

// Before MPI's function that waits: progress until `is_ready()`.
template <typename IsReady>
void progress_until(IsReady is_ready) {
  while (is_in_flight() && !is_ready()) host::progress();
}
// Before MPI's function that tests.
void progress_once() {
  if (is_in_flight()) host::progress();
}

// MPI reports a null pointer.
Request request_at(const void* requests, int i) {
  return requests != nullptr ? static_cast<const Request*>(requests)[i] : kRequestNull;
}

bool is_any_over(int count, const void* requests) {
  bool has_any = false;
  for (int i = 0; i < count; ++i) {
    const Request request = request_at(requests, i);
    if (request == kRequestNull) continue;
    if (is_over(request)) return true;
    has_any = true;
  }
  return !has_any;
}

}  // namespace

CEPHEUS_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  static const auto next_one = next<int(int*, char***, int, int*)>("MPI_Init_thread");
  read_parameters();
  const bool has_calls = find_calls();
  const bool requests = has_calls && parameters().chosen_mode() != Mode::kOff;
  const int rc = next_one(argc, argv, requests ? kThreadMultiple : required, provided);
  if (rc == kSuccess) begin(has_calls, *provided);
  return rc;
}

CEPHEUS_EXPORT int MPI_Init(int* argc, char*** argv) {
  static const auto next_one = next<int(int*, char***)>("MPI_Init");
  static const auto next_thread = next<int(int*, char***, int, int*)>("MPI_Init_thread");
  read_parameters();
  const bool has_calls = find_calls();
  const bool requests =
      has_calls && next_thread != nullptr && parameters().chosen_mode() != Mode::kOff;
  int level = 0;
  const int rc = requests ? next_thread(argc, argv, kThreadMultiple, &level) : next_one(argc, argv);
  if (rc == kSuccess) begin(has_calls, level);
  return rc;
}

// MPI allows no call of another thread beside MPI_Finalize. MPICH 4.0 then releases the thread's lock.
CEPHEUS_EXPORT int MPI_Finalize() {
  static const auto next_one = next<int()>("MPI_Finalize");
  end_thread();
  return next_one();
}

CEPHEUS_EXPORT int PMPI_Finalize() {
  static const auto next_one = next<int()>("PMPI_Finalize");
  end_thread();
  return next_one();
}

CEPHEUS_EXPORT int MPI_Bcast(void* memory, int count, Handle type, int root, Handle comm) {
  static const auto next_one = next<int(void*, int, Handle, int, Handle)>("MPI_Bcast");
  return broadcast({memory, count, static_cast<Datatype>(type), root}, static_cast<Comm>(comm),
                   [&] { return next_one(memory, count, type, root, comm); });
}

CEPHEUS_EXPORT int MPI_Bcast_c(void* memory, Count count, Handle type, int root, Handle comm) {
  static const auto next_one = next<int(void*, Count, Handle, int, Handle)>("MPI_Bcast_c");
  return broadcast({memory, count, static_cast<Datatype>(type), root}, static_cast<Comm>(comm),
                   [&] { return next_one(memory, count, type, root, comm); });
}

CEPHEUS_EXPORT int MPI_Ibcast(void* memory, int count, Handle type, int root, Handle comm,
                              void* request) {
  static const auto next_one = next<int(void*, int, Handle, int, Handle, void*)>("MPI_Ibcast");
  return start_broadcast({memory, count, static_cast<Datatype>(type), root},
                         static_cast<Comm>(comm), static_cast<Request*>(request),
                         [&] { return next_one(memory, count, type, root, comm, request); });
}

CEPHEUS_EXPORT int MPI_Ibcast_c(void* memory, Count count, Handle type, int root, Handle comm,
                                void* request) {
  static const auto next_one = next<int(void*, Count, Handle, int, Handle, void*)>("MPI_Ibcast_c");
  return start_broadcast({memory, count, static_cast<Datatype>(type), root},
                         static_cast<Comm>(comm), static_cast<Request*>(request),
                         [&] { return next_one(memory, count, type, root, comm, request); });
}

// Only MPICH's family has broadcasts of ours in flight: there `requests` are Requests.

CEPHEUS_EXPORT int MPI_Wait(void* request, void* status) {
  static const auto next_one = next<int(void*, void*)>("MPI_Wait");
  progress_until([&] { return is_over(request_at(request, 0)); });
  return next_one(request, status);
}

CEPHEUS_EXPORT int MPI_Waitall(int count, void* requests, void* statuses) {
  static const auto next_one = next<int(int, void*, void*)>("MPI_Waitall");
  for (int i = 0; i < count && is_in_flight(); ++i)
    progress_until([&] { return is_over(request_at(requests, i)); });
  return next_one(count, requests, statuses);
}

CEPHEUS_EXPORT int MPI_Waitany(int count, void* requests, int* index, void* status) {
  static const auto next_one = next<int(int, void*, int*, void*)>("MPI_Waitany");
  progress_until([&] { return is_any_over(count, requests); });
  return next_one(count, requests, index, status);
}

CEPHEUS_EXPORT int MPI_Waitsome(int count, void* requests, int* done, int* indices,
                                void* statuses) {
  static const auto next_one = next<int(int, void*, int*, int*, void*)>("MPI_Waitsome");
  progress_until([&] { return is_any_over(count, requests); });
  return next_one(count, requests, done, indices, statuses);
}

CEPHEUS_EXPORT int MPI_Test(void* request, int* flag, void* status) {
  static const auto next_one = next<int(void*, int*, void*)>("MPI_Test");
  progress_once();
  return next_one(request, flag, status);
}

CEPHEUS_EXPORT int MPI_Testall(int count, void* requests, int* flag, void* statuses) {
  static const auto next_one = next<int(int, void*, int*, void*)>("MPI_Testall");
  progress_once();
  return next_one(count, requests, flag, statuses);
}

CEPHEUS_EXPORT int MPI_Testany(int count, void* requests, int* index, int* flag, void* status) {
  static const auto next_one = next<int(int, void*, int*, int*, void*)>("MPI_Testany");
  progress_once();
  return next_one(count, requests, index, flag, status);
}

CEPHEUS_EXPORT int MPI_Testsome(int count, void* requests, int* done, int* indices,
                                void* statuses) {
  static const auto next_one = next<int(int, void*, int*, int*, void*)>("MPI_Testsome");
  progress_once();
  return next_one(count, requests, done, indices, statuses);
}

CEPHEUS_EXPORT int MPI_Request_get_status(Handle request, int* flag, void* status) {
  static const auto next_one = next<int(Handle, int*, void*)>("MPI_Request_get_status");
  progress_once();
  return next_one(request, flag, status);
}
