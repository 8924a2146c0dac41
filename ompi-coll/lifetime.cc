// When groups go: as their communicator is freed, or at the start of MPI_Finalize, while messages
// still flow.
//
// By the time Open MPI disables a module its communicator can't communicate any more, but attribute
// callbacks run before that: on MPI_Comm_free for the communicator itself, and first thing in
// MPI_Finalize for MPI_COMM_SELF.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "ompi-coll/module.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/request.h"

namespace cepheus::coll {

namespace {

// A rank that died must not keep the others from leaving, unless it may need what only they have.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kOwingPatience{600};

// Taken by whoever comes; who only progresses passes by.
std::atomic_flag list_busy = ATOMIC_FLAG_INIT;
std::vector<CommunicatorState*> watched;
std::size_t next_watched = 0;
std::atomic<int> in_flight{0};  // communicators with non-blocking broadcasts

class ListGuard {
 public:
  ListGuard() {
    while (list_busy.test_and_set()) sched_yield();
  }
  ~ListGuard() { list_busy.clear(); }
  ListGuard(const ListGuard&) = delete;
  ListGuard& operator=(const ListGuard&) = delete;
};
int comm_keyval = MPI_KEYVAL_INVALID;
int self_keyval = MPI_KEYVAL_INVALID;

void forget(CommunicatorState* state) {
  const ListGuard guard;
  std::erase(watched, state);
}

// All at once: ranks may hold communicators in different orders.
void tear_down_all(std::vector<CommunicatorState*> states) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  std::vector<CommunicatorState*> left = states;
  while (!left.empty()) {
    std::erase_if(left, [](CommunicatorState* state) { return state->tear_down(); });
    if (left.empty()) break;
    const bool owing =
        std::any_of(left.begin(), left.end(), [](const auto* state) { return state->is_owing(); });
    const auto extra = owing ? kOwingPatience - kPatience : std::chrono::seconds(0);
    if (std::chrono::steady_clock::now() > give_up + extra) {
      opal_output(output_stream(),
                  "cepheus: %s: not all ranks came to free their multicast group within %d s; "
                  "leaving without them",
                  left.front()->comm()->c_name, static_cast<int>((kPatience + extra).count()));
      break;
    }
    opal_progress();
  }
  for (CommunicatorState* state : states) state->destroy_groups();
}

extern "C" int on_comm_free(MPI_Comm, int, void* value, void*) {
  auto* state = static_cast<CommunicatorState*>(value);
  state->finish_started();
  forget(state);
  state->free_hierarchy();
  if (state->has_groups()) tear_down_all({state});
  return MPI_SUCCESS;
}

extern "C" int on_finalize(MPI_Comm, int, void*, void*) {
  std::vector<CommunicatorState*> states;
  {
    const ListGuard guard;
    states = watched;
  }
  // What was started needs the others, who may hold communicators in another order: all of them go
  // on meanwhile.
  for (CommunicatorState* state : states) state->finish_started();
  {
    const ListGuard guard;
    watched.clear();
  }
  std::erase_if(states, [](const CommunicatorState* state) { return !state->has_groups(); });
  tear_down_all(std::move(states));
  return MPI_SUCCESS;
}

int make_keyval(int* keyval, MPI_Comm_delete_attr_function* on_delete) {
  if (*keyval != MPI_KEYVAL_INVALID) return OMPI_SUCCESS;
  ompi_attribute_fn_ptr_union_t copy, remove;
  // A duplicate has a module, and so a state, of its own.
  copy.attr_communicator_copy_fn = [](MPI_Comm, int, void*, void*, void*, int* flag, MPI_Comm) {
    *flag = 0;
    return MPI_SUCCESS;
  };
  remove.attr_communicator_delete_fn = on_delete;
  return ompi_attr_create_keyval(COMM_ATTR, copy, remove, keyval, nullptr, 0, nullptr);
}

}  // namespace

// One state a call: with hundreds of communicators alive a look at all would be felt.
void progress_communicators() {
  if (list_busy.test_and_set()) return;  // another thread is at it, or this is inside one
  if (!watched.empty()) {
    next_watched = next_watched + 1 < watched.size() ? next_watched + 1 : 0;
    watched[next_watched]->watch();
  }
  list_busy.clear();
}

void add_in_flight(int communicators) { in_flight.fetch_add(communicators); }

void progress_ibcasts() {
  if (in_flight.load(std::memory_order_relaxed) == 0) return;
  if (list_busy.test_and_set()) return;
  std::vector<Finished> finished;
  for (CommunicatorState* state : watched) {
    if (state->is_in_flight()) state->advance(finished);
  }
  list_busy.clear();
  for (const Finished& each : finished) complete_request(each.request, each.rc);
}

int watch_communicator(ompi_communicator_t* comm, CommunicatorState* state) {
  int rc = make_keyval(&comm_keyval, on_comm_free);
  if (rc == OMPI_SUCCESS && self_keyval == MPI_KEYVAL_INVALID) {
    rc = make_keyval(&self_keyval, on_finalize);
    ompi_communicator_t* self = &ompi_mpi_comm_self.comm;
    if (rc == OMPI_SUCCESS)
      rc = ompi_attr_set_c(COMM_ATTR, self, &self->c_keyhash, self_keyval, nullptr, false);
  }
  if (rc == OMPI_SUCCESS)
    rc = ompi_attr_set_c(COMM_ATTR, comm, &comm->c_keyhash, comm_keyval, state, false);
  if (rc != OMPI_SUCCESS) return rc;
  const ListGuard guard;
  watched.push_back(state);
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
