// MPI_Comm_free and MPI_Finalize, where groups go.
//
// By the time Open MPI disables a module its communicator can't communicate any more, but attribute
// callbacks run before that: on MPI_Comm_free for the communicator itself, and first thing in
// MPI_Finalize for MPI_COMM_SELF.
//
// Groups go once all members have everything, and a member may come to MPI_Comm_free as late as it
// likes. So a freed communicator that has groups is kept from Open MPI's destructor (as its own
// requests in flight do) until the last member has come: MPI_Comm_free returns at once, and no new
// communicator gets the context id while messages of the old one may be under way. MPI_Finalize, in
// which Open MPI waits for all ranks anyway, waits for all of them. Without MPI_Finalize, in programs
// that have MPI sessions alone, MPI_Comm_free waits.
#include "ompi-coll/lifetime.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "ompi-coll/clock.h"
#include "ompi-coll/request.h"
#include "ompi-coll/transport.h"

namespace cepheus::coll {

namespace {

// Taken by whoever comes; who only progresses passes by.
std::atomic_flag list_busy = ATOMIC_FLAG_INIT;
std::vector<CommunicatorState*> watched;
std::size_t next_watched = 0;
std::atomic<bool> is_progressed{false};
std::atomic<int> in_flight{0};  // communicators with non-blocking broadcasts
std::atomic<int> called{0};     // communicators that other ranks may need something of
std::atomic<int> closing{0};  // communicators that the program has freed and that are still watched

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

void forget(const CommunicatorState* state) {
  const ListGuard guard;
  std::erase(watched, state);
}

// A state that is watched no more. If the program has freed the communicator, this ends both.
void release(CommunicatorState* state) {
  const bool freed = state->is_freed();
  state->detach();
  if (!freed) return;
  ompi_communicator_t* comm = state->comm();
  closing.fetch_sub(1);
  OBJ_RELEASE(comm);
}

// Lets those communicators do what they have to that are called, and one after the other of all.
void progress_communicators() {
  if (list_busy.test_and_set()) return;  // another thread is at it, or this is inside one
  if (called.load(std::memory_order_relaxed) > 0) {
    for (CommunicatorState* state : watched) {
      if (state->take_call()) state->watch();
    }
  }
  if (!watched.empty()) {
    next_watched = next_watched + 1 < watched.size() ? next_watched + 1 : 0;
    watched[next_watched]->watch();
  }
  list_busy.clear();
}

// What non-blocking broadcasts in flight can do now.
void progress_broadcasts() {
  if (in_flight.load(std::memory_order_relaxed) == 0) return;
  if (list_busy.test_and_set()) return;
  std::vector<Finished> finished;
  for (CommunicatorState* state : watched) {
    if (state->is_in_flight()) state->advance(finished);
  }
  list_busy.clear();
  for (const Finished& each : finished) complete_request(each.request, each.rc);
}

// 0: there was nothing to do, and Open MPI gives the core away (mpi_yield_when_idle). A device of
// software that has moved packets or slept until some came is not idle, though none completes a
// message: that shows in the time it took, which an empty queue of a hardware device never takes.
extern "C" int progress(void) {
  constexpr auto kIdleLook = std::chrono::microseconds(10);
  static std::atomic<unsigned> calls{0};
  constexpr unsigned kWatchEvery = 8;
  const bool is_turn = calls.fetch_add(1, std::memory_order_relaxed) % kWatchEvery == 0;
  if (is_turn || called.load(std::memory_order_relaxed) > 0) progress_communicators();
  const Clock::time_point began = Clock::now();
  const unsigned done = Transport::instance().progress();
  const bool was_idle = done == 0 && Clock::now() - began < kIdleLook;
  progress_broadcasts();
  return was_idle ? 0 : 1;
}

// MPI_Init has been called, and MPI_Finalize has not. A program that has MPI sessions alone (MPI-4, Open MPI 5) has no
// MPI_COMM_SELF, and MPI_Finalize never comes: all its communicators are freed by the program.
bool is_world_model() {
  const auto state = ompi_mpi_state;
  return state >= OMPI_MPI_STATE_INIT_STARTED && state < OMPI_MPI_STATE_FINALIZE_STARTED;
}

extern "C" int on_comm_free(MPI_Comm, int, void* value, void*) {
  auto* state = static_cast<CommunicatorState*>(value);
  state->finish_started();
  if (!state->has_groups() || state->close()) {
    forget(state);
    state->detach();
  } else if (OMPI_COMM_IS_DYNAMIC(state->comm()) || !is_world_model()) {
    // Two jobs that part: neither shall wait for the other in its MPI_Finalize. And the end of an
    // MPI session waits for no rank.
    while (!state->close()) opal_progress();
    forget(state);
    state->detach();
  } else {
    OBJ_RETAIN(state->comm());
    state->set_freed();
    closing.fetch_add(1);
  }
  reap_communicators();
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
  for (CommunicatorState* state : states) {
    if (!state->is_closing()) state->finish_started();
  }
  reap_communicators();
  {
    const ListGuard guard;
    states.swap(watched);
    watched.clear();
  }
  // All at once: ranks may hold communicators in different orders.
  std::vector<CommunicatorState*> left;
  for (CommunicatorState* state : states) {
    if (state->has_groups()) left.push_back(state);
  }
  while (!left.empty()) {
    std::erase_if(left, [](CommunicatorState* state) { return state->close(); });
    if (!left.empty()) opal_progress();
  }
  for (CommunicatorState* state : states) release(state);
  return MPI_SUCCESS;
}

int make_keyval(int* keyval, MPI_Comm_delete_attr_function* on_delete) {
  if (*keyval != MPI_KEYVAL_INVALID) return OMPI_SUCCESS;
  ompi_attribute_fn_ptr_union_t copy, remove;
  // A duplicate has a module, and so a state, of its own.
  copy.attr_communicator_copy_fn = [](MPI_Comm, int, void*, void*, void*, int* flag, auto...) {
    *flag = 0;
    return MPI_SUCCESS;
  };
  remove.attr_communicator_delete_fn = on_delete;
  return ompi_attr_create_keyval(COMM_ATTR, copy, remove, keyval, nullptr, 0, nullptr);
}

}  // namespace

// One state a call: with hundreds of communicators alive a look at all would be felt.
void begin_background_progress() {
  if (!is_progressed.exchange(true)) (void)opal_progress_register(progress);
}

void end_background_progress() {
  if (is_progressed.exchange(false)) (void)opal_progress_unregister(progress);
}

void add_in_flight(int communicators) {
  if (communicators > 0) begin_background_progress();
  in_flight.fetch_add(communicators);
}

void add_called(int communicators) { called.fetch_add(communicators); }

void reap_communicators() {
  if (closing.load(std::memory_order_relaxed) == 0) return;
  std::vector<CommunicatorState*> gone;
  {
    const ListGuard guard;
    const auto end = std::partition(watched.begin(), watched.end(), [](CommunicatorState* state) {
      return !state->is_freed() || !state->is_closed();
    });
    gone.assign(end, watched.end());
    watched.erase(end, watched.end());
  }
  for (CommunicatorState* state : gone) release(state);
}

int watch_communicator(ompi_communicator_t* comm, CommunicatorState* state) {
  int rc = make_keyval(&comm_keyval, on_comm_free);
  if (rc == OMPI_SUCCESS && self_keyval == MPI_KEYVAL_INVALID && is_world_model()) {
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
