// Broadcasts of one communicator take turns. Each one passes these steps, from the third one on
// under the guard `busy_`:
//
//   served?   is_known_unserved: the ranks' places rule multicast out; look_again() asks anew
//   earned?   FirstCalls: before enough broadcasts or bytes MPI's own function serves them
//   placed?   HostDiscovery finds the ranks' hosts once; then Algorithms sets up teams
//   way       Safeguard: multicast, or the other way as a sample or by its judgement
//   progress  until the algorithm is done, or kNotServed sends the call to MPI's own function
//
// A blocking broadcast waits in serve() and calls MPI's progress. Non-blocking ones queue in
// `incoming_`, and advance() runs them from MPI's progress, one at a time, in the order of calls.
// `life_` has a communicator's end: README.md has its states.
#include "collectives/communicator_state.h"

#include <thread>
#include <utility>

#include "collectives/communicators.h"
#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/group/messages.h"

namespace cepheus::coll {

using Shape = Placement::Shape;

namespace {

// The reason why a communicator has no group yet.
std::string not_earned() {
  const Parameters& p = parameters();
  return "a group is set up after " + std::to_string(p.set_up_after) + " broadcasts or " +
         std::to_string(p.set_up_bytes) + " bytes of them (" + host::parameter("set_up_after") +
         ", " + host::parameter("set_up_bytes") + ")";
}

}  // namespace

CommunicatorState::CommunicatorState(host::Communicator& comm)
    : all_(Team::all(comm, reserve_tags(comm))),
      host_discovery_(all_),
      algorithms_(all_),
      safeguard_(all_) {}

bool CommunicatorState::is_known_unserved() {
  std::call_once(first_call_, [this] {
    if (!host_discovery_.is_known_to_all()) return;
    alike_ = true;
    if (is_unserved()) log_unserved();
  });
  return alike_.load(std::memory_order_relaxed) && is_unserved();
}

// Never looks again: ranks may start other requests before or after they make this one.
bool CommunicatorState::may_serve_request() {
  constexpr size_t kMany = ~size_t{0} / 2;  // bytes: it is started again and again
  if (is_closing() || is_known_unserved()) return false;
  return first_calls_.have_earned() || is_earned(kMany);
}

bool CommunicatorState::may_serve(size_t bytes) {
  if (is_closing()) return false;
  if (is_known_unserved()) {
    if (!host_discovery_.may_change() || !look_again_.count()) return false;
    look_again();
    return true;
  }
  return first_calls_.have_earned() || is_earned(bytes);
}

bool CommunicatorState::is_earned(size_t bytes) {
  const bool is_earned = first_calls_.earn(bytes, parameters());
  if (!is_earned && first_calls_.is_first() && all_.is_leader()) {
    host::log(1, "cepheus: %s: %s's own algorithms: %s", all_.name().c_str(),
              host::implementation(), not_earned().c_str());
  }
  return is_earned;
}

// Ranks learn the places at different times, so calls of non-blocking broadcasts can't count alike
// until a blocking one has ended. Their turns do.
bool CommunicatorState::is_look_due(const Broadcast& broadcast) {
  return !broadcast.is_blocking() && !alike_ && host_discovery_.may_change() && look_again_.count();
}

// Multicast was impossible: a rank had no device, or could not open it. That may be over.
void CommunicatorState::look_again() {
  for (;;) {
    const Guard guard(busy_);
    if (!guard) continue;  // held for moments
    // Earlier broadcasts take the old path on all ranks, also those that have not had their turn.
    (void)take_incoming();
    for (Broadcast* each = started_.front(); each != nullptr; each = each->behind)
      each->is_unserved = true;
    unserved_reason_ = placement().reason;
    alike_ = false;
    is_placed_ = false;
    return host_discovery_.again();
  }
}

// --- Blocking broadcasts.

Code CommunicatorState::serve(Broadcast& broadcast) {
  finish_started();
  release_communicators();
  Code rc = Code::kPending;
  while (rc == Code::kPending) {
    {
      const Guard guard(busy_);
      if (guard) {
        rc = step(broadcast);
        look_after();
        serves_ = rc == Code::kPending;
        // The algorithm is the next broadcast's as soon as the guard is given back.
        if (rc == Code::kNotServed)
          broadcast.why_saved = broadcast.algorithm->reason();
        else if (rc != Code::kPending)
          end_turn(broadcast, rc);
        if (!serves_) break;
      }
    }
    host::progress();
    if (const auto sleep = std::exchange(sleep_, {}); sleep.count() > 0)
      std::this_thread::sleep_for(sleep);
  }
  alike_ = true;
  return rc;
}

Code CommunicatorState::step(Broadcast& broadcast) {
  if (broadcast.algorithm == nullptr) {
    const Code rc = choose_algorithm(broadcast);
    if (rc != Code::kDone) return rc;
  }
  const Code rc = broadcast.algorithm->progress();
  if (rc == Code::kPending) sleep_ = broadcast.algorithm->spare_time();
  return rc == Code::kDone ? broadcast.payload.error() : rc;
}

Code CommunicatorState::choose_algorithm(Broadcast& broadcast) {
  Payload& payload = broadcast.payload;
  const int root = broadcast.root;
  const bool blocking = broadcast.is_blocking();
  if (broadcast.is_unserved) {
    broadcast.algorithm = &algorithms_.begin_other(payload, root, blocking, unserved_reason_);
    return Code::kDone;
  }
  if (is_placed_ && is_look_due(broadcast)) {
    is_placed_ = false;
    host_discovery_.again();
  }
  if (!is_placed_) {
    if (!host_discovery_.progress()) return Code::kPending;
    place();
  }
  if (placement().shape == Shape::kNone && parameters().chosen_mode() == Mode::kRequire) {
    if (all_.is_leader()) host::abort_job(comm(), placement().reason);
    return Code::kPending;  // until then
  }
  Way way = Way::kMulticast;
  if (const Code rc = choose_way(broadcast, way); rc != Code::kDone) return rc;
  broadcast.algorithm = way == Way::kSaved
                            ? &algorithms_.begin_other(payload, root, blocking, safeguard_.reason())
                            : &algorithms_.begin(payload, root, blocking, placement().reason);
  return Code::kDone;
}

Code CommunicatorState::choose_way(Broadcast& broadcast, Way& way) {
  if (is_unserved()) return Code::kDone;
  const Code rc = safeguard_.choose(broadcast.payload.bytes(), broadcast.is_blocking(), way);
  if (const auto judgement = safeguard_.take_judgement()) {
    const std::lock_guard<std::mutex> guard(calls_mutex_);
    calls_.judge(comm(), *judgement);
  }
  return rc;
}

// Under the guard: the broadcast has ended, be it by the saved function.
void CommunicatorState::end_turn(const Broadcast& broadcast, Code rc) {
  const bool is_right = rc == Code::kDone;
  const Algorithm* const algorithm = broadcast.algorithm;
  const bool is_timed = is_right && algorithm != nullptr && algorithm->is_comparable();
  safeguard_.end(is_timed ? std::optional(algorithm->route()) : std::nullopt);
  if (!is_right) return;
  count(algorithm->route(), broadcast.is_blocking(), algorithm->reason(),
        {broadcast.began, broadcast.payload.bytes(), broadcast.root});
}

// The placement is known.
void CommunicatorState::place() {
  is_placed_ = true;
  algorithms_.place(placement(), [this] { call(); });
  if (is_unserved()) log_unserved();
  if (placement().shape == Shape::kHosts && all_.is_leader()) {
    host::log(1, "cepheus: %s: %zu hosts; multicast among one rank of each, point to point inside",
              all_.name().c_str(), placement().hosts.size());
  }
  host_discovery_.forget_ranks();
  if (algorithms_.is_member()) begin_background_progress();
}

void CommunicatorState::log_unserved() {
  const int level = std::exchange(is_logged_, true) ? 2 : 1;
  if (!all_.is_leader()) return;
  host::log(level, "cepheus: %s: %s's own algorithms: %s", all_.name().c_str(),
            host::implementation(), placement().reason.c_str());
}

// --- Non-blocking ones.

void CommunicatorState::start(Broadcast& broadcast) {
  Messages::free_completed();
  {
    const std::lock_guard<std::mutex> guard(incoming_mutex_);
    incoming_.push(&broadcast);
    if (!in_flight_.exchange(true)) add_in_flight(1);
  }
  BroadcastQueue complete;
  advance(complete);
  finish(complete);
}

void CommunicatorState::finish_started() {
  while (is_in_flight()) {
    BroadcastQueue complete;
    advance(complete);
    finish(complete);
    if (is_in_flight()) host::progress();
  }
}

void CommunicatorState::finish(BroadcastQueue& complete) {
  while (Broadcast* const broadcast = complete.pop())
    broadcast->done(broadcast, broadcast->outcome);
}

bool CommunicatorState::take_incoming() {
  const std::lock_guard<std::mutex> incoming(incoming_mutex_);
  started_.take(incoming_);
  if (!started_.is_empty()) return true;
  if (in_flight_.exchange(false)) add_in_flight(-1);
  return false;
}

void CommunicatorState::advance(BroadcastQueue& out) {
  const Guard guard(busy_);
  if (!guard || serves_) return;
  while (take_incoming()) {
    Broadcast& broadcast = *started_.front();
    broadcast.outcome = step(broadcast);
    look_after();
    if (broadcast.outcome == Code::kPending) return;
    end_turn(broadcast, broadcast.outcome);
    out.push(started_.pop());
  }
}

// --- Counts.

void CommunicatorState::count_saved(bool blocking, const CallReport::Times& times,
                                    const std::string& why) {
  const bool is_early = !first_calls_.have_earned() && !(alike_ && is_unserved());
  std::string own = why;
  if (own.empty()) own = is_early ? not_earned() : placement().reason;
  if (is_closing()) own = "MPI_Finalize has ended its groups";
  count(Route::kSaved, blocking, own, times);
}

void CommunicatorState::count_saved(const Broadcast& broadcast) {
  for (bool is_counted = false; !is_counted;) {
    const Guard guard(busy_);  // held for moments
    if (!guard) continue;
    safeguard_.end(Route::kSaved);
    is_counted = true;
  }
  count(Route::kSaved, true, broadcast.why_saved,
        {broadcast.began, broadcast.payload.bytes(), broadcast.root});
}

void CommunicatorState::count(Route route, bool blocking, const std::string& reason,
                              const CallReport::Times& times) {
  counters().add_broadcast(route, blocking);
  const std::lock_guard<std::mutex> guard(calls_mutex_);
  calls_.count(comm(), route, blocking, reason.c_str(), times);
}

// --- Beside the program's calls.

void CommunicatorState::look_after() {
  if (algorithms_.look_after()) call();
}

void CommunicatorState::call() {
  if (!called_.exchange(true)) add_called(1);
}

bool CommunicatorState::take_call() {
  const bool was_called = called_.load(std::memory_order_relaxed) && called_.exchange(false);
  if (was_called) add_called(-1);
  return was_called;
}

void CommunicatorState::watch() {
  if (is_closing()) {
    (void)close();
    return;
  }
  const Guard guard(busy_);
  if (guard) look_after();
}

bool CommunicatorState::close() {
  if (is_closed()) return true;
  life_.fetch_or(kClosing);
  if (is_in_flight()) return false;
  const Guard guard(busy_);
  if (!guard || !algorithms_.tear_down()) return false;
  life_.fetch_or(kClosed);
  return true;
}

void CommunicatorState::detach() {
  algorithms_.detach();
  safeguard_.forget();
  (void)take_call();
}

}  // namespace cepheus::coll
