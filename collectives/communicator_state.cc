// The calls of one communicator take turns. Each passes these steps, from the third one on under
// the guard `busy_`:
//
//   served?   is_known_unserved: the ranks' places rule multicast out; look_again() asks anew
//   earned?   FirstCalls: before enough calls or bytes MPI's own function serves them
//   placed?   HostDiscovery finds the ranks' hosts once; then Algorithms sets up teams
//   way       Safeguard: the network, or the other way as a sample or by its judgement
//   progress  until the algorithm is done, or kNotServed sends the call to MPI's own function
//
// A blocking call waits in serve() and calls MPI's progress. Non-blocking ones queue in
// `incoming_`, and advance() runs them from MPI's progress, one at a time, in the order of calls.
// `life_` has a communicator's end: README.md has its states.
#include "collectives/communicator_state.h"

#include <thread>
#include <utility>

#include "collectives/communicators.h"
#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/group/messages.h"
#include "collectives/reasons.h"

namespace cepheus::coll {

using Shape = Placement::Shape;

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
  if (is_closing() || !parameters().serves(Collective::kBcast) || is_known_unserved()) return false;
  return first_broadcasts_.have_earned() || is_earned(Collective::kBcast, kMany);
}

bool CommunicatorState::may_serve(size_t bytes) { return may_serve(Collective::kBcast, bytes); }

bool CommunicatorState::may_serve(const ReductionShape& shape) {
  return may_be_ours(shape, all_.size()) && may_serve(shape.collective, shape.block);
}

bool CommunicatorState::count_if_unserved(Collective collective, bool blocking) {
  if (is_closing() || !is_known_unserved() || host_discovery_.may_change() ||
      CallReport::begin_call() != 0)
    return false;
  count_saved({collective, blocking}, {}, "");
  return true;
}

bool CommunicatorState::may_serve(Collective collective, size_t bytes) {
  if (is_closing() || !parameters().serves(collective)) return false;
  if (is_known_unserved()) {
    if (!host_discovery_.may_change() || !look_again_.count()) return false;
    look_again();
    return true;
  }
  return first_calls(collective).have_earned() || is_earned(collective, bytes);
}

bool CommunicatorState::is_earned(Collective collective, size_t bytes) {
  FirstCalls& first = first_calls(collective);
  const bool is_earned = first.earn(collective, bytes, parameters());
  if (!is_earned && first.is_first() && all_.is_leader()) {
    host::log(1, "cepheus: %s: %s's own algorithms: %s", all_.name().c_str(),
              host::implementation(), not_earned(collective).c_str());
  }
  return is_earned;
}

// Ranks learn the places at different times, so calls of non-blocking collectives can't count
// alike until a blocking one has ended. Their turns do.
bool CommunicatorState::is_look_due(const Turn& turn) {
  return !turn.is_blocking() && !alike_ && host_discovery_.may_change() && look_again_.count();
}

// Multicast was impossible: a rank had no device, or could not open it. That may be over.
void CommunicatorState::look_again() {
  for (;;) {
    const Guard guard(busy_);
    if (!guard) continue;  // held for moments
    // Earlier calls take the old path on all ranks, also those that have not had their turn.
    (void)take_incoming();
    for (Turn* each = started_.front(); each != nullptr; each = each->behind)
      each->is_unserved = true;
    unserved_reason_ = placement().reason;
    alike_ = false;
    is_placed_ = false;
    return host_discovery_.again();
  }
}

// --- Blocking calls.

Code CommunicatorState::serve(Turn& turn) {
  finish_started();
  release_communicators();
  Code rc = Code::kPending;
  while (rc == Code::kPending) {
    {
      const Guard guard(busy_);
      if (guard) {
        rc = step(turn);
        look_after();
        serves_ = rc == Code::kPending;
        // The algorithm is the next call's as soon as the guard is given back.
        if (rc == Code::kNotServed)
          turn.why_saved = turn.algorithm->reason();
        else if (rc != Code::kPending)
          end_turn(turn, rc);
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

Code CommunicatorState::step(Turn& turn) {
  if (turn.algorithm == nullptr) {
    const Code rc = choose_algorithm(turn);
    if (rc != Code::kDone) return rc;
  }
  const Code rc = turn.algorithm->progress();
  if (rc == Code::kPending) sleep_ = turn.algorithm->spare_time();
  return rc == Code::kDone ? turn.error() : rc;
}

Code CommunicatorState::choose_algorithm(Turn& turn) {
  if (!turn.is_unserved) {
    if (is_placed_ && is_look_due(turn)) {
      is_placed_ = false;
      host_discovery_.again();
    }
    if (!is_placed_) {
      if (!host_discovery_.progress()) return Code::kPending;
      place();
    }
    const bool must_multicast =
        turn.collective == Collective::kBcast && parameters().chosen_mode() == Mode::kRequire;
    if (must_multicast && placement().shape == Shape::kNone) {
      if (all_.is_leader()) host::abort_job(comm(), placement().reason);
      return Code::kPending;  // until then
    }
  }
  return turn.collective == Collective::kBcast ? begin(static_cast<Broadcast&>(turn))
                                               : begin(static_cast<Reduction&>(turn));
}

Code CommunicatorState::begin(Broadcast& broadcast) {
  Payload& payload = broadcast.payload;
  const int root = broadcast.root;
  const bool blocking = broadcast.is_blocking();
  if (broadcast.is_unserved) {
    broadcast.algorithm = &algorithms_.begin_other(payload, root, blocking, unserved_reason_);
    return Code::kDone;
  }
  Choice choice;
  if (const Code rc = choose_way({Collective::kBcast, payload.bytes(), blocking}, choice);
      rc != Code::kDone)
    return rc;
  broadcast.algorithm = choice.way == Way::kOther
                            ? &algorithms_.begin_other(payload, root, blocking, safeguard_.reason())
                            : &algorithms_.begin(payload, root, blocking, placement().reason);
  return Code::kDone;
}

Code CommunicatorState::begin(Reduction& reduction) {
  const ReductionShape& shape = reduction.shape;
  const bool blocking = reduction.is_blocking();
  if (is_long(shape, all_.size())) return begin_long(reduction);
  if (reduction.is_unserved) {
    reduction.algorithm = &algorithms_.begin_other(shape, reduction.data, unserved_reason_);
    return Code::kDone;
  }
  Choice choice;
  const Code rc = choose_way({shape.collective, shape.block, blocking}, choice);
  if (rc != Code::kDone) return rc;
  const std::string& why = choice.way == Way::kOther ? safeguard_.reason() : placement().reason;
  reduction.algorithm = &algorithms_.begin(shape, reduction.data, blocking, choice, why);
  return Code::kDone;
}

// Where the network serves none, the ways are not compared.
Code CommunicatorState::begin_long(Reduction& reduction) {
  const ReductionShape& shape = reduction.shape;
  const bool blocking = reduction.is_blocking();
  Choice choice{Way::kOther};
  std::string_view why = reduction.is_unserved ? unserved_reason_
                         : is_unserved()       ? placement().reason
                                               : algorithms_.why_not_network(reduction.data);
  if (!reduction.is_unserved && algorithms_.may_network(reduction.data)) {
    choice = {};
    const bool is_compared = algorithms_.may_compare(reduction.data);
    const SizeClass sizes{shape.collective, shape.block, blocking};
    const Code rc = is_compared ? choose_way(sizes, choice) : Code::kDone;
    if (rc != Code::kDone) return rc;
    if (choice.way == Way::kOther) why = safeguard_.reason();
  }
  reduction.algorithm =
      &algorithms_.begin_long(shape, reduction.data, blocking && is_unserved(), choice, why);
  return Code::kDone;
}

Code CommunicatorState::choose_way(const SizeClass& sizes, Choice& choice) {
  if (is_unserved()) return Code::kDone;
  const Code rc = safeguard_.choose(sizes, choice);
  if (const auto judgement = safeguard_.take_judgement()) {
    const std::lock_guard<std::mutex> guard(calls_mutex_);
    calls_.judge(comm(), *judgement);
  }
  return rc;
}

// Under the guard: the call has ended, be it by the saved function.
void CommunicatorState::end_turn(const Turn& turn, Code rc) {
  const bool is_right = rc == Code::kDone;
  const Algorithm* const algorithm = turn.algorithm;
  if (!is_right && (algorithm == nullptr || !algorithm->has_met_all())) {
    safeguard_.fail(algorithm != nullptr && algorithm->is_refused());
    if (turn.collective != Collective::kBcast || !is_mistake(rc)) retire_tags();
    return;
  }
  const bool is_timed = is_right && algorithm->is_comparable();
  safeguard_.end(is_timed ? std::optional(algorithm->route()) : std::nullopt);
  if (!is_right) return;
  count({turn.collective, turn.blocking}, algorithm->route(), algorithm->reason(), turn.times());
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

void CommunicatorState::start(Turn& turn) {
  Messages::free_completed();
  {
    const std::lock_guard<std::mutex> guard(incoming_mutex_);
    incoming_.push(&turn);
    if (!in_flight_.exchange(true)) add_in_flight(1);
  }
  TurnQueue complete;
  advance(complete);
  finish(complete);
}

void CommunicatorState::finish_started() {
  while (is_in_flight()) {
    TurnQueue complete;
    advance(complete);
    finish(complete);
    if (is_in_flight()) host::progress();
  }
}

void CommunicatorState::finish(TurnQueue& complete) {
  while (Turn* const turn = complete.pop()) turn->finish();
}

bool CommunicatorState::take_incoming() {
  const std::lock_guard<std::mutex> incoming(incoming_mutex_);
  started_.take(incoming_);
  if (!started_.is_empty()) return true;
  if (in_flight_.exchange(false)) add_in_flight(-1);
  return false;
}

void CommunicatorState::advance(TurnQueue& out) {
  const Guard guard(busy_);
  if (!guard || serves_) return;
  while (take_incoming()) {
    Turn& turn = *started_.front();
    turn.outcome = step(turn);
    look_after();
    if (turn.outcome == Code::kPending) return;
    end_turn(turn, turn.outcome);
    out.push(started_.pop());
  }
}

// --- Counts.

void CommunicatorState::count_saved(bool blocking, const CallReport::Times& times,
                                    const std::string& why) {
  count_saved({Collective::kBcast, blocking}, times, why);
}

void CommunicatorState::count_saved(const ReductionShape& shape, bool blocking, std::int64_t began,
                                    const std::string& why) {
  const CallReport::Kind kind{shape.collective, blocking};
  const CallReport::Times times{began, shape.block, shape.root};
  if (!why.empty() || may_be_ours(shape, all_.size()) || !parameters().serves(shape.collective))
    return count_saved(kind, times, why);
  count_saved(kind, times, not_ours(shape, all_.size()));
}

// Copies no text: on one machine a reduction takes less than a microsecond.
void CommunicatorState::count_saved(const CallReport::Kind& kind, const CallReport::Times& times,
                                    const std::string& why) {
  const auto for_reason = [&](const std::string& reason) {
    count(kind, Route::kSaved, reason, times);
  };
  if (is_closing()) return for_reason("MPI_Finalize has ended its groups");
  if (!parameters().serves(kind.collective))
    return for_reason(host::parameter("collectives") + " does not have it");
  if (!why.empty()) return for_reason(why);
  const bool is_early = !first_calls(kind.collective).have_earned() && !(alike_ && is_unserved());
  is_early ? for_reason(not_earned(kind.collective)) : for_reason(placement().reason);
}

void CommunicatorState::count_saved(const Turn& turn) {
  for (bool is_counted = false; !is_counted;) {
    const Guard guard(busy_);  // held for moments
    if (!guard) continue;
    safeguard_.end(Route::kSaved);
    is_counted = true;
  }
  count({turn.collective, true}, Route::kSaved, turn.why_saved, turn.times());
}

void CommunicatorState::count(const CallReport::Kind& kind, Route route, const std::string& reason,
                              const CallReport::Times& times) {
  if (kind.collective == Collective::kBcast)
    counters().add_broadcast(route, kind.blocking);
  else
    counters().add_reduction(kind.collective, route);
  const std::lock_guard<std::mutex> guard(calls_mutex_);
  calls_.count(comm(), kind, route, reason.c_str(), times);
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
  if (algorithms_.has_given_up() || safeguard_.has_failed()) retire_tags();
  algorithms_.detach();
  safeguard_.forget();
  (void)take_call();
}

}  // namespace cepheus::coll
