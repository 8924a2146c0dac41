// The list `watched` has the communicators that Cepheus may serve. One thread at a time works on
// it. MPI's progress only tries its lock, because it may run inside a call that holds it. The lock is
// not held while a communicator's calls advance: the program's operations run there, and may wait for
// a thread that makes or frees a communicator. A pin keeps the state's object meanwhile.
//
// Costs are bounded: each eighth call of progress serves those communicators that were called and
// one more; all of them only while a broadcast is in flight. A look at freed ones closes 16 at
// most, every 100 us at most.
#include "collectives/communicators.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <vector>

#include "collectives/group/clock.h"
#include "collectives/group/messages.h"
#include "collectives/group/transport.h"

namespace cepheus::coll {

namespace {

// Progress only tries the lock: another thread may hold it.
std::atomic_flag list_busy = ATOMIC_FLAG_INIT;
std::vector<CommunicatorState*> watched;
std::size_t next_watched = 0;
std::atomic<bool> is_progressed{false};
std::atomic<int> in_flight{0};          // communicators with non-blocking calls
std::atomic<int> called{0};             // communicators that other ranks may need something of
std::atomic<int> freed_and_watched{0};  // communicators

class ListGuard {
 public:
  ListGuard() {
    while (list_busy.test_and_set()) sched_yield();
  }
  ~ListGuard() { list_busy.clear(); }
  ListGuard(const ListGuard&) = delete;
  ListGuard& operator=(const ListGuard&) = delete;
};

// Before a state that is watched no more ends. No call is in flight there, so the thread that has it
// pinned waits for nothing.
void await_unpinned(const CommunicatorState& state) {
  while (state.is_pinned()) sched_yield();
}

// A state that is watched no more. If the program has freed the communicator, this ends both.
void release(CommunicatorState* state) {
  await_unpinned(*state);
  const bool freed = state->is_freed();
  state->detach();
  if (!freed) return;
  host::Communicator& comm = state->comm();
  freed_and_watched.fetch_sub(1);
  host::release(comm);
}

// Serves the communicators that were called, and one more of all in turn. With hundreds of them a
// look at all would cost too much.
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

// Each look costs the program's call, and a late rank may keep communicators for long.
bool is_look_due() {
  constexpr auto kBetweenLooks = std::chrono::microseconds(100);
  static std::atomic<Clock::time_point> next{};
  const Clock::time_point now = Clock::now();
  if (now < next.load()) return false;
  next = now + kBetweenLooks;
  return true;
}

// Advances some of the communicators that the program has freed, and all in turn. `watched` is held.
void close_freed() {
  constexpr std::size_t kMostAtOnce = 16;
  static std::size_t next = 0;
  std::size_t left = kMostAtOnce;
  for (std::size_t seen = 0; seen < watched.size() && left > 0; ++seen) {
    next = next + 1 < watched.size() ? next + 1 : 0;
    if (!watched[next]->is_freed()) continue;
    (void)watched[next]->close();
    --left;
  }
}

// Pins the next state from index `next` on that has calls in flight and that no thread advances. Null:
// there is none, or another thread is at the list.
CommunicatorState* pin_next(std::size_t& next) {
  if (list_busy.test_and_set()) return nullptr;
  CommunicatorState* found = nullptr;
  for (; found == nullptr && next < watched.size(); ++next) {
    if (watched[next]->is_in_flight() && !watched[next]->is_pinned()) found = watched[next];
  }
  if (found != nullptr) found->pin();
  list_busy.clear();
  return found;
}

// Advances non-blocking calls in flight.
void progress_calls() {
  if (in_flight.load(std::memory_order_relaxed) == 0) return;
  TurnQueue complete;
  std::size_t next = 0;
  while (CommunicatorState* const state = pin_next(next)) {
    state->advance(complete);
    state->unpin();
    // Now: the next state's operation may wait for a lock of a thread that waits for one of these.
    CommunicatorState::finish(complete);
  }
}

}  // namespace

// A device of software that has moved packets or slept until some came is not idle, though none
// completes a message: that shows in the time it took, which an empty queue of a hardware device
// never takes.
bool progress_in_background() {
  constexpr auto kIdleLook = std::chrono::microseconds(10);
  static std::atomic<unsigned> calls{0};
  constexpr unsigned kWatchEvery = 8;
  const bool is_turn = calls.fetch_add(1, std::memory_order_relaxed) % kWatchEvery == 0;
  if (is_turn || called.load(std::memory_order_relaxed) > 0) progress_communicators();
  const Clock::time_point began = Clock::now();
  const unsigned done = Transport::instance().progress();
  const bool was_idle = done == 0 && Clock::now() - began < kIdleLook;
  progress_calls();
  return !was_idle;
}

void free_communicator(CommunicatorState& state, bool is_in_progress) {
  const auto leave_to_later_calls = [&] {
    host::retain(state.comm());
    state.set_freed();
    freed_and_watched.fetch_add(1);
  };
  if (is_in_progress) return leave_to_later_calls();
  // Two jobs that part: neither shall wait for the other in its MPI_Finalize.
  const bool waits_here = host::is_dynamic(state.comm()) || host::outlives_finalize(state.comm());
  if (waits_here) state.finish_started();
  if ((!state.is_in_flight() && !state.has_groups()) || state.close()) {
    forget_communicator(state);
    state.detach();
  } else if (waits_here) {
    while (!state.close()) host::progress();
    forget_communicator(state);
    state.detach();
  } else {
    leave_to_later_calls();
  }
  release_communicators();
}

void forget_communicator(const CommunicatorState& state) {
  {
    const ListGuard guard;
    std::erase(watched, &state);
  }
  await_unpinned(state);
}

void finalize_communicators() {
  const auto ends_here = [](const CommunicatorState* state) {
    return !host::outlives_finalize(state->comm());
  };
  std::vector<CommunicatorState*> states;
  {
    const ListGuard guard;
    std::ranges::copy_if(watched, std::back_inserter(states), ends_here);
  }
  // Started broadcasts need the other ranks, which may finish their communicators in another order.
  // So all communicators advance meanwhile.
  for (CommunicatorState* state : states) state->finish_started();
  release_communicators();
  {
    const ListGuard guard;
    const auto end = std::partition(watched.begin(), watched.end(), std::not_fn(ends_here));
    states.assign(end, watched.end());
    watched.erase(end, watched.end());
  }
  // All at once: ranks may hold communicators in different orders.
  std::vector<CommunicatorState*> left = states;
  while (!left.empty()) {
    std::erase_if(left, [](CommunicatorState* state) { return state->close(); });
    if (!left.empty()) host::progress();
  }
  for (CommunicatorState* state : states) release(state);
}

void begin_background_progress() {
  if (!is_progressed.exchange(true)) host::start_background_progress();
}

void end_background_progress() {
  if (is_progressed.exchange(false)) host::stop_background_progress();
}

void add_in_flight(int communicators) {
  if (communicators > 0) begin_background_progress();
  in_flight.fetch_add(communicators);
}

void add_called(int communicators) { called.fetch_add(communicators); }

void release_communicators() {
  Messages::free_completed();
  if (freed_and_watched.load(std::memory_order_relaxed) == 0 || !is_look_due()) return;
  std::vector<CommunicatorState*> gone;
  {
    const ListGuard guard;
    close_freed();
    const auto end = std::partition(watched.begin(), watched.end(), [](CommunicatorState* state) {
      return !state->is_freed() || !state->is_closed();
    });
    gone.assign(end, watched.end());
    watched.erase(end, watched.end());
  }
  for (CommunicatorState* state : gone) release(state);
}

void watch_communicator(CommunicatorState& state) {
  const ListGuard guard;
  watched.push_back(&state);
}

}  // namespace cepheus::coll
