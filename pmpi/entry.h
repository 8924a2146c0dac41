// Shared by the functions that this library defines in front of MPI.
//
// All work that is not ours goes to the next definition, which is another tool's or MPI's, by the
// arguments as they came. A handle is a word here: MPICH's handles are ints, Open MPI's are pointers,
// and the MPI may be one that this build does not serve.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/call_report.h"
#include "collectives/core/collective.h"
#include "pmpi/calls.h"
#include "pmpi/codes.h"
#include "pmpi/communicator.h"
#include "pmpi/request.h"

#define CEPHEUS_EXPORT extern "C" __attribute__((visibility("default")))

namespace cepheus::pmpi {

using Handle = std::uintptr_t;

// Between MPI_Init and MPI_Finalize.
inline std::atomic<bool> serves{false};
// A call of the next definition, in this thread, and those around it. A tool's calls PMPI_Bcast on the
// same communicator, which then goes on to MPI. On another one it may be MPI's own, as of ROMIO in
// MPI's progress, at a time of this rank's alone: it is served as on all ranks.
struct PassedOn {
  Comm comm;
  const PassedOn* outer;
};
inline thread_local const PassedOn* passed_on = nullptr;
inline bool is_passed_on(Comm comm) {
  const PassedOn* each = passed_on;
  while (each != nullptr && each->comm != comm) each = each->outer;
  return each != nullptr;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(next_definition(name));
}

template <typename Next>
int pass_on(Comm comm, Next next_one) {
  const PassedOn inner{comm, passed_on};
  passed_on = &inner;
  const int rc = next_one();
  passed_on = inner.outer;
  return rc;
}

// Null: MPI serves this collective on `comm`, whatever the other arguments are. Without `has_data` it
// is counted nowhere.
Communicator* find_served(Comm comm, coll::Collective collective, bool blocking, bool has_data);

// Reports it as MPI does.
inline int report(int error, Comm comm) {
  if (error != kSuccess) (void)calls().Comm_call_errhandler(comm, error);
  return error;
}

// A blocking call. `communicator` is null if MPI serves it. Else `serve(prepare, saved)` enters the
// collective.
template <typename Next, typename Serve>
int call_now(Communicator* communicator, Comm comm, Next next_one, Serve serve) {
  if (communicator == nullptr) return pass_on(comm, next_one);
  std::optional<int> saved_rc;
  const coll::Code code = serve([&] { return exchange_tags(*communicator, comm); },
                                [&] {
                                  saved_rc = pass_on(comm, next_one);
                                  return to_code(*saved_rc);
                                });
  return saved_rc ? *saved_rc : report(from_code(code), comm);
}

// A non-blocking one: `is_served()` says whether the collective is ours, and `count_saved(why)` counts
// that it is not. Other ranks may be late: nothing here waits for them, nor exchanges tags.
template <typename Call, typename Next, typename IsServed, typename CountSaved>
int start_call(Communicator* communicator, const Call& call, Comm comm, Request* request,
               Next next_one, IsServed is_served, CountSaved count_saved) {
  if (communicator == nullptr || request == nullptr) return pass_on(comm, next_one);
  if (!communicator->addresses.is_known()) {
    const std::string why_not = communicator->why_no_addresses;
    count_saved(!why_not.empty()
                    ? why_not
                    : "a non-blocking call before a blocking one, such as MPI_Bcast, has "
                      "set this communicator up");
    return pass_on(comm, next_one);
  }
  if (!is_served()) return pass_on(comm, next_one);
  return report(start_request(*communicator, call, *request), comm);
}

}  // namespace cepheus::pmpi
