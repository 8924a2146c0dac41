// MPI's functions that begin, end and wait, as programs that preload this library call them.
#include "pmpi/entry.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "collectives/communicators.h"
#include "collectives/core/parameters.h"
#include "collectives/group/transport.h"
#include "pmpi/background.h"
#include "pmpi/operations.h"
#include "pmpi/parameters.h"
#include "pmpi/verdict.h"

namespace {

using namespace cepheus::pmpi;
using namespace cepheus::coll;

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
  return calls().Comm_create_keyval(copy_nothing, on_finalize, &keyval, nullptr) == kSuccess &&
         calls().Comm_set_attr(kCommSelf, keyval, nullptr) == kSuccess;
}

std::string why_unable(bool has_calls) {
  if (!has_calls) return std::string("it has not the ABI of ") + kAbi + ", or is too old";
  int level = 0;
  if (calls().Query_thread(&level) != kSuccess || level < kThreadMultiple)
    return "it gave no MPI_THREAD_MULTIPLE";
  // Ranks may use different types of one signature: packed data must be the bare bytes.
  constexpr int kCount = 7;
  int bytes = 0;
  if (calls().Pack_size(kCount, kInt, kCommSelf, &bytes) != kSuccess ||
      bytes != kCount * static_cast<int>(sizeof(int)))
    return "its packed data is not the bare bytes";
  return "";
}

constexpr char kComponent[] =
    "it has loaded coll/cepheus; \"--mca coll ^cepheus\" leaves them to libcepheus-mpi.so";

// MPI is initialised. All ranks come here, because one alone would wait for the others for ever.
void begin(bool has_calls) {
  const std::string failed = "a function of it failed";
  const bool is_off = parameters().chosen_mode() == Mode::kOff;
  const bool has_component = !is_off && has_calls && component_serves();
  std::string why = is_off ? "" : has_component ? kComponent : why_unable(has_calls);
  bool reports_reason = true;
  if (has_calls) {
    if (!is_off && why.empty() && !(open_communicators() && watch_finalize())) why = failed;
    Verdict verdict = agree(is_off, why.empty());
    if (verdict.is_off) return;
    if (verdict.why_not.empty()) {
      if (!open_world()) why = failed;
      verdict = agree(false, why.empty());
    }
    if (why.empty()) {
      why = verdict.why_not;
      reports_reason = verdict.is_first_rank;
    }
    if (has_component) reports_reason = verdict.is_first_rank;
  }
  serves = why.empty() && !is_off;
  if (serves || is_off) return;
  const bool required = parameters().chosen_mode() == Mode::kRequire;
  if (required || reports_reason)
    host::log(required || has_component ? 0 : 1,
              "cepheus: this MPI library serves all collectives: %s", why.c_str());
  if (required) exit(1);
}

template <typename Next>
int end_communicator(void* comm, Next next_one) {
  if (!serves || comm == nullptr) return next_one(comm);
  const Comm outer = std::exchange(ending, *static_cast<Comm*>(comm));
  const int rc = next_one(comm);
  ending = outer;
  return rc;
}

// MPICH reports errors of collectives' requests to their communicators only in MPI_Wait and MPI_Test.
template <typename Call>
int complete_one(Call call) {
  Failure failure;
  set_failure(&failure);
  const int rc = call();
  set_failure(nullptr);
  return rc != kSuccess ? rc : report(failure.error, failure.comm);
}
template <typename Call>
int complete_any(Call call) {
  return call();
}

// Inside MPI_Init or its kin. A tool behind this library calls PMPI_Init from its MPI_Init.
bool is_initializing = false;
bool requests_threads = false;

// `initialize()` calls the next function. MPI's shall give MPI_THREAD_MULTIPLE if that is requested.
template <typename Initialize>
int start_mpi(Initialize initialize) {
  if (std::exchange(is_initializing, true)) return initialize();
  read_parameters();
  const bool has_calls = find_calls();
  requests_threads = has_calls && parameters().chosen_mode() != Mode::kOff;
  const int rc = initialize();
  is_initializing = false;
  if (rc == kSuccess) begin(has_calls);
  return rc;
}

}  // namespace

// Functions are defined by both of their names: MPICH's Fortran 2008 calls PMPI_Init and PMPI_Wait.
// Each goes to the next function of the same name.
#define DEFINE_INIT_THREAD(prefix)                                                               \
  CEPHEUS_EXPORT int prefix##Init_thread(int* argc, char*** argv, int required, int* provided) { \
    static const auto next_one = next<int(int*, char***, int, int*)>(#prefix "Init_thread");     \
    return start_mpi([&] {                                                                       \
      return next_one(argc, argv, requests_threads ? kThreadMultiple : required, provided);      \
    });                                                                                          \
  }
DEFINE_INIT_THREAD(MPI_)
DEFINE_INIT_THREAD(PMPI_)

CEPHEUS_EXPORT int PMPI_Init(int* argc, char*** argv) {
  static const auto next_one = next<int(int*, char***)>("PMPI_Init");
  static const auto next_thread = next<int(int*, char***, int, int*)>("PMPI_Init_thread");
  return start_mpi([&] {
    int level = 0;
    return requests_threads && next_thread != nullptr
               ? next_thread(argc, argv, kThreadMultiple, &level)
               : next_one(argc, argv);
  });
}

// A tool's function comes to PMPI_Init itself.
CEPHEUS_EXPORT int MPI_Init(int* argc, char*** argv) {
  static const auto next_one = next<int(int*, char***)>("MPI_Init");
  static const bool is_tools = is_next_a_tools("Init");
  return start_mpi([&] { return is_tools ? next_one(argc, argv) : PMPI_Init(argc, argv); });
}

// MPI allows no call of another thread beside MPI_Finalize. MPICH 4.0 then releases the thread's lock.
#define DEFINE_FINALIZE(prefix)                                   \
  CEPHEUS_EXPORT int prefix##Finalize() {                         \
    static const auto next_one = next<int()>(#prefix "Finalize"); \
    end_thread();                                                 \
    return next_one();                                            \
  }
DEFINE_FINALIZE(MPI_)
DEFINE_FINALIZE(PMPI_)

#define DEFINE_FREE(name)                                 \
  CEPHEUS_EXPORT int name(void* comm) {                   \
    static const auto next_one = next<int(void*)>(#name); \
    return end_communicator(comm, next_one);              \
  }
DEFINE_FREE(MPI_Comm_free)
DEFINE_FREE(MPI_Comm_disconnect)
// Fortran of both libraries calls these.
DEFINE_FREE(PMPI_Comm_free)
DEFINE_FREE(PMPI_Comm_disconnect)

// Operations of reductions in flight are kept.
#define DEFINE_OP_FREE(name)                                                                 \
  CEPHEUS_EXPORT int name(void* op) {                                                        \
    static const auto next_one = next<int(void*)>(#name);                                    \
    if (!serves || op == nullptr || !free_later(*static_cast<Op*>(op))) return next_one(op); \
    *static_cast<Op*>(op) = kOpNull;                                                         \
    return kSuccess;                                                                         \
  }
DEFINE_OP_FREE(MPI_Op_free)
DEFINE_OP_FREE(PMPI_Op_free)

// A wait tests while a call of ours is in flight. So those make progress, and MPI polls all kinds of
// requests, and reports each error once. `is_over`: the test has found completed requests, or none.
#define DEFINE_WAIT_OF(prefix, complete, name, parameters, arguments, test, test_parameters, \
                       test_arguments, is_over)                                              \
  CEPHEUS_EXPORT int prefix##name parameters {                                               \
    static const auto next_wait = next<int parameters>(#prefix #name);                       \
    static const auto next_test = next<int test_parameters>(#prefix #test);                  \
    while (is_in_flight()) {                                                                 \
      [[maybe_unused]] int flag = 0;                                                         \
      const int rc = complete([&] { return next_test test_arguments; });                     \
      if (rc != kSuccess || (is_over)) return rc;                                            \
      host::progress();                                                                      \
    }                                                                                        \
    return complete([&] { return next_wait arguments; });                                    \
  }
#define DEFINE_WAIT(...)            \
  DEFINE_WAIT_OF(MPI_, __VA_ARGS__) \
  DEFINE_WAIT_OF(PMPI_, __VA_ARGS__)
#define DEFINE_TEST_OF(prefix, complete, name, parameters, arguments) \
  CEPHEUS_EXPORT int prefix##name parameters {                        \
    static const auto next_one = next<int parameters>(#prefix #name); \
    if (is_in_flight()) host::progress();                             \
    return complete([&] { return next_one arguments; });              \
  }
#define DEFINE_TEST(...)            \
  DEFINE_TEST_OF(MPI_, __VA_ARGS__) \
  DEFINE_TEST_OF(PMPI_, __VA_ARGS__)

DEFINE_WAIT(complete_one, Wait, (void* request, void* status), (request, status), Test,
            (void*, int*, void*), (request, &flag, status), flag != 0)
DEFINE_WAIT(complete_any, Waitall, (int count, void* requests, void* statuses),
            (count, requests, statuses), Testall, (int, void*, int*, void*),
            (count, requests, &flag, statuses), flag != 0)
DEFINE_WAIT(complete_any, Waitany, (int count, void* requests, int* index, void* status),
            (count, requests, index, status), Testany, (int, void*, int*, int*, void*),
            (count, requests, index, &flag, status), flag != 0)
DEFINE_WAIT(complete_any, Waitsome,
            (int count, void* requests, int* done, int* indices, void* statuses),
            (count, requests, done, indices, statuses), Testsome, (int, void*, int*, int*, void*),
            (count, requests, done, indices, statuses), *done != 0)
DEFINE_TEST(complete_one, Test, (void* request, int* flag, void* status), (request, flag, status))
DEFINE_TEST(complete_any, Testall, (int count, void* requests, int* flag, void* statuses),
            (count, requests, flag, statuses))
DEFINE_TEST(complete_any, Testany, (int count, void* requests, int* index, int* flag, void* status),
            (count, requests, index, flag, status))
DEFINE_TEST(complete_any, Testsome,
            (int count, void* requests, int* done, int* indices, void* statuses),
            (count, requests, done, indices, statuses))
DEFINE_TEST(complete_any, Request_get_status, (Handle request, int* flag, void* status),
            (request, flag, status))
