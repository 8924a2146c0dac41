#include "ompi-coll/multicast.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "ompi-coll/abort_job.h"
#include "ompi-coll/clock.h"
#include "ompi-coll/counters.h"
#include "ompi-coll/eager_operation.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll {

namespace {

constexpr std::chrono::seconds kLeaderSpeaksFirst{1};

std::string group_text(uint32_t value) {
  return std::to_string(value >> 24) + '.' + std::to_string(value >> 16 & 255) + '.' +
         std::to_string(value >> 8 & 255) + '.' + std::to_string(value & 255);
}

}  // namespace

Multicast::Multicast(const Team& team, std::function<void()> called)
    : team_(team),
      session_(std::make_unique<Session>(team, 1, false)),
      link_(team, std::move(called)),
      since_(Clock::now()),
      tear_down_(team) {}

Multicast::~Multicast() = default;

// --- Broadcasts.

bool Multicast::is_small(size_t bytes) { return bytes <= parameters().eager_bytes(); }

size_t Multicast::unit_bytes(bool small) {
  return small ? parameters().eager_unit() : BulkOperation::most_bytes();
}

uint64_t Multicast::take_units(size_t bytes) {
  if (const auto next = session_->take_next_unit()) next_unit_ = *next;
  const size_t unit = unit_bytes(is_small(bytes));
  const uint64_t first = next_unit_;
  next_unit_ += (bytes + unit - 1) / unit;
  ++broadcasts_;
  return first;
}

// A cut before the unit's broadcast is known to all members alike, so they all do the same there.
bool Multicast::is_cut_before(uint64_t unit) const {
  const auto cut = session_->agreement().cut();
  return cut.has_value() && *cut < unit;
}

// More roots than get a sender group: all members count them alike.
int Multicast::refuse_root(int root) {
  reason_ = "rank " + std::to_string(team_.rank_of(root)) +
            " has no sender group: " + std::to_string(parameters().max_senders) +
            " other roots have theirs (coll_cepheus_max_senders)";
  const bool first = !reported_full_;
  reported_full_ = true;
  if (parameters().chosen_mode() != Mode::kRequire) {
    if (team_.is_leader()) {
      opal_output_verbose(first ? 1 : 2, output_stream(),
                          "cepheus: %s: open mpi's own algorithms: %s", team_.name().c_str(),
                          reason_.c_str());
    }
    return OMPI_ERR_NOT_AVAILABLE;
  }
  if (team_.is_leader()) abort_job(team_, reason_);
  return OMPI_ERR_WOULD_BLOCK;  // until the leader ends the job
}

int Multicast::prepare(uint64_t first, bool small, int root) {
  if (is_cut_before(first) && first >= session_->agreement().retry_at()) {
    const int rc = try_again(first, root);
    if (rc != OMPI_SUCCESS) return rc;
  }
  if (is_cut_before(first)) {
    reason_ = session_->agreement().reason();
    return OMPI_ERR_NOT_AVAILABLE;
  }
  TeamLane* const lane = small ? &session_->eager() : session_->bulk(root);
  if (lane == nullptr) return refuse_root(root);
  TeamLane& needed = *lane;
  switch (needed.state()) {
    case TeamLane::State::kReady:
    case TeamLane::State::kClosed:
      reason_ = carrier_;
      return OMPI_SUCCESS;
    case TeamLane::State::kFailed:
      if (first < needed.retry_at()) {
        reason_ = needed.reason();
        return OMPI_ERR_NOT_AVAILABLE;
      }
      needed.reset();
      break;
    default:
      break;
  }
  return set_up(needed, first);
}

int Multicast::set_up(TeamLane& lane, uint64_t first) {
  if (lane.state() == TeamLane::State::kUnused) {
    Backoff next = set_up_backoff_;
    next.ended(Clock::now().time_since_epoch());
    lane.set_retry_after(retry_after(next));
    const Agreement& agreement = session_->agreement();
    if (agreement.is_broken()) lane.refuse(agreement.reason());
  }
  const bool again = lane.retry_at() != TeamLane::kNever;  // refused before
  switch (lane.progress()) {
    case TeamLane::State::kReady:
      break;
    case TeamLane::State::kFailed:
      if (lane.is_mistaken()) {
        opal_output(output_stream(), "cepheus: broadcast on %s: %s", team_.comm()->c_name,
                    lane.reason().c_str());
        lane.reset();
        next_unit_ = first + 1;  // each member has counted by its own bytes
        return MPI_ERR_COUNT;
      }
      set_up_backoff_.ended(Clock::now().time_since_epoch());
      lane.set_retry_at(lane.retry_after() == TeamLane::kNever ? TeamLane::kNever
                                                               : first + lane.retry_after());
      reason_ = lane.reason();
      if (lane.is_broken()) session_->agreement().give_up(first, lane.retry_at(), reason_);
      report(lane, again);
      // The leader ends the job with one error; the others wait for that here, and never return to
      // the program.
      return parameters().chosen_mode() == Mode::kRequire ? OMPI_ERR_WOULD_BLOCK
                                                          : OMPI_ERR_NOT_AVAILABLE;
    default:
      return OMPI_ERR_WOULD_BLOCK;
  }
  const int rc = link_.open();
  if (rc != OMPI_SUCCESS) return rc;
  set_up_backoff_.began(Clock::now().time_since_epoch());
  counters().add(Counters::Which::kGroups);
  set_carrier();
  reason_ = carrier_;
  report(lane, again);
  return OMPI_SUCCESS;
}

// What a new session is tried with; it has a place for its first root, as those before it had.
TeamLane& Multicast::first_lane(Session& session, int root) {
  return parameters().has_sender_groups() ? *session.bulk(root) : session.eager();
}

void Multicast::set_carrier() {
  carrier_ = Transport::instance().carrier();
  if (parameters().has_sender_groups()) carrier_ += ", a sender group for each root";
}

// A session has broken, and the agreed unit for another attempt has come. All members are here.
int Multicast::try_again(uint64_t unit, int root) {
  if (next_session_ == nullptr) {
    next_session_ = std::make_unique<Session>(team_, session_->generation() + 1, true);
    Backoff next = backoff_;
    next.ended(Clock::now().time_since_epoch());
    first_lane(*next_session_, root).set_retry_after(retry_after(next));
  }
  // The port can be opened anew only when nothing holds it any more.
  if (!session_->agreement().is_salvaged()) return OMPI_ERR_WOULD_BLOCK;
  TeamLane& lane = first_lane(*next_session_, root);
  const TeamLane::State state = lane.progress();
  if (state != TeamLane::State::kReady && state != TeamLane::State::kFailed)
    return OMPI_ERR_WOULD_BLOCK;
  int error = MPI_SUCCESS;
  if (!repairs_.test(error)) return OMPI_ERR_WOULD_BLOCK;

  const auto now = Clock::now();
  backoff_.ended(now.time_since_epoch());
  since_ = now;
  since_unit_ = unit;
  std::unique_ptr<Session> next = std::move(next_session_);
  if (state == TeamLane::State::kFailed) {
    session_->agreement().set_retry_at(
        lane.retry_after() == TeamLane::kNever ? kNoUnit : unit + lane.retry_after());
    if (team_.is_leader()) {
      opal_output_verbose(1, output_stream(), "cepheus: %s: still open mpi's own algorithms: %s",
                          team_.name().c_str(), lane.reason().c_str());
    }
    return OMPI_SUCCESS;
  }
  backoff_.began(now.time_since_epoch());
  counters().add(Counters::Which::kGroups);
  speed_.forget();
  set_carrier();
  session_.swap(next);
  std::vector<Held> held;
  held.swap(held_);
  for (const Held& each : held) session_->agreement().receive(each.from, each.message, actions_);
  reported_ = false;
  report(lane, false);
  return OMPI_SUCCESS;
}

uint64_t Multicast::retry_after(Backoff backoff) const {
  backoff.ended(Clock::now().time_since_epoch());
  return Backoff::units_for(backoff.interval(), next_unit_ - since_unit_, Clock::now() - since_);
}

std::unique_ptr<Operation> Multicast::make_operation(const Call& call, bool small) {
  if (small) return std::make_unique<EagerOperation>(call, *session_);
  return std::make_unique<BulkOperation>(call, *session_);
}

int Multicast::run(Operation& operation) {
  current_ = &operation;
  const int rc = operation.progress(actions_);
  if (rc != OMPI_ERR_WOULD_BLOCK) current_ = nullptr;
  return rc;
}

void Multicast::note_speed(const Call& call, const BulkOperation& operation) {
  const auto time = operation.transfer_time();
  if (time.count() == 0 || session_->agreement().is_broken()) return;
  const double usual = speed_.usual(call.length);
  if (!speed_.note(call.length, time) || !parameters().falls_back_when_slow()) return;
  char text[160];
  snprintf(text, sizeof text,
           "%s: broadcasts of %zu bytes take more than twice as long as usual (%.0f MB/s)",
           rank_text(team_).c_str(), call.length, usual / 1e6);
  session_->agreement().fail(Cause::kSlow, text);
}

int Multicast::check(const Call& call, bool awaits_members) {
  const CallAtHand own{call.unit, call.root, call.payload->bytes()};
  if (awaits_members && check_.is_due(own, Clock::now())) {
    ControlMessage message{};
    message.kind = ControlMessage::Kind::kCalled;
    message.generation = session_->generation();
    message.unit = own.unit;
    message.value = own.bytes;
    (void)link_.send(Action::kEveryone, message);
  }
  const auto mistake = check_.look(own);
  return mistake ? end_in_mistake(call, *mistake) : OMPI_ERR_WOULD_BLOCK;
}

// Every member's call ends in an error that names the mistake.
int Multicast::end_in_mistake(const Call& call, const CallCheck::Mistake& mistake) {
  using Kind = CallCheck::Mistake::Kind;
  current_ = nullptr;          // its operation ends
  next_unit_ = call.unit + 1;  // each member has counted by its own bytes
  session_->agreement().leave(next_unit_, actions_);
  if (mistake.kind == Kind::kTold) {
    (void)broken(call, mistake.reason.c_str());
    return static_cast<int>(mistake.bytes);
  }
  const size_t bytes = call.payload->bytes();
  const auto rank = [&](int member) { return "rank " + std::to_string(team_.rank_of(member)); };
  const bool is_root = mistake.kind == Kind::kRoot;
  const std::string reason =
      is_root ? rank_text(team_) + " expects the data of " + rank(call.root) + ", but " +
                    rank(mistake.from) + " calls with itself as the root"
              : rank_text(team_) + " passes " + std::to_string(bytes) + " bytes, but " +
                    rank(mistake.from) + ", the root, " + std::to_string(mistake.bytes);
  ControlMessage message{};
  message.kind = ControlMessage::Kind::kMistake;
  message.generation = session_->generation();
  message.unit = call.unit;
  message.value = static_cast<uint64_t>(is_root ? MPI_ERR_ROOT : MPI_ERR_COUNT);
  snprintf(message.reason, sizeof message.reason, "%s", reason.c_str());
  (void)link_.send(Action::kEveryone, message);
  (void)broken(call, reason.c_str());
  if (is_root) return MPI_ERR_ROOT;
  return mistake.bytes > bytes ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT;
}

// --- Beside them.

void Multicast::look_after() {
  if (!link_.is_open()) return;
  receive();
  const Agreement& agreement = session_->agreement();
  // Only the rank that lacks the data knows of it yet. Later its own call would fail, and other
  // ranks would end the job because the group broke.
  if (agreement.is_broken() && agreement.cause() == Cause::kLost &&
      parameters().chosen_mode() == Mode::kRequire)
    abort_job(team_, agreement.reason());
  session_->watch(actions_);
  session_->agreement().watch(Clock::now(), actions_);
  // Acting may make more to do.
  while (!actions_.empty()) {
    Actions now;
    now.swap(actions_);
    take(now);
  }
}

void Multicast::receive() {
  int from = 0;
  ControlMessage message{};
  while (link_.receive(from, message)) {
    if (message.kind == ControlMessage::Kind::kCalled ||
        message.kind == ControlMessage::Kind::kMistake) {
      check_.receive(from, message);
    } else if (message.generation == session_->generation()) {
      session_->agreement().receive(from, message, actions_);
    } else if (message.generation > session_->generation()) {
      held_.push_back({from, message});
    }
  }
}

void Multicast::take(const Actions& actions) {
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::kSend:
        if (action.to == Action::kEveryone) announce(action.message);
        (void)link_.send(action.to, action.message);
        break;
      case Action::Kind::kServeStored:
        serve_stored(action.to, action.message.unit);
        break;
      case Action::Kind::kTellDelivered:
        if (session_->is_delivered(action.message.unit))
          session_->agreement().deliver(action.to, action.message.unit, actions_);
        break;
      case Action::Kind::kServeCurrent:
        if (current_ != nullptr &&
            current_->serve(action.to, action.message.value) == OMPI_ERR_NOT_AVAILABLE)
          session_->agreement().gone(action.to, action.message.unit, actions_);
        break;
    }
  }
}

void Multicast::serve_stored(int to, uint64_t unit) {
  const std::vector<std::byte>* message = session_->stored(unit);
  if (message == nullptr) return session_->agreement().gone(to, unit, actions_);
  counters().add(Counters::Which::kServed);
  (void)repairs_.send(message->data(), message->size(), to, Tag::kRepair, team_);
}

// This member is about to tell the others that the group is given up.
void Multicast::announce(const ControlMessage& message) {
  if (parameters().chosen_mode() == Mode::kRequire) {
    // The leader knows the reason. It ends the job itself, unless its program computes.
    if (message.cause == Cause::kLeader && !team_.is_leader())
      std::this_thread::sleep_for(kLeaderSpeaksFirst);
    abort_job(team_, message.reason);
  }
  const std::string team = team_.name();
  const auto call = static_cast<unsigned long long>(broadcasts_);
  if (message.kind == ControlMessage::Kind::kCut) {
    opal_output_verbose(1, output_stream(),
                        "cepheus: %s: open mpi's own algorithms from broadcast %llu on (%s): %s; "
                        "multicast is tried again after %llu more",
                        team.c_str(), call, name(message.cause), message.reason,
                        static_cast<unsigned long long>(message.value - message.unit));
  } else {
    opal_output_verbose(1, output_stream(),
                        "cepheus: %s: the group broke (%s), what is in flight after broadcast %llu "
                        "began is completed point to point: %s",
                        team.c_str(), name(message.cause), call, message.reason);
  }
}

// `again`: it was refused before, and so reported.
void Multicast::report(const TeamLane& lane, bool again) {
  const std::string name = &lane == &session_->eager() ? "eager lane" : "bulk lane";
  const bool own = lane.sender() != TeamLane::kAnyMember;
  const std::string of = own ? " of rank " + std::to_string(team_.rank_of(lane.sender())) : "";
  const bool first = !reported_;
  reported_ = true;
  if (!team_.is_leader()) return;
  const bool ready = lane.state() != TeamLane::State::kFailed;
  if (!ready && parameters().chosen_mode() == Mode::kRequire) abort_job(team_, lane.reason());
  const int level = (ready ? first || again : !again) ? 1 : 2;
  if (ready) {
    opal_output_verbose(level, output_stream(), "cepheus: %s: multicast, %s%s on %s %s epoch %u",
                        team_.name().c_str(), name.c_str(), of.c_str(),
                        own ? "sender group from" : "group", group_text(lane.mcst_id()).c_str(),
                        lane.epoch());
  } else {
    opal_output_verbose(level, output_stream(),
                        "cepheus: %s: open mpi's own algorithms for the %s%s: %s",
                        team_.name().c_str(), name.c_str(), of.c_str(), lane.reason().c_str());
  }
}

// --- Tear-down.

bool Multicast::tear_down() {
  tear_down_started_ = true;
  look_after();
  int error = MPI_SUCCESS;
  return tear_down_.progress(session_->is_drained()) && repairs_.test(error);
}

void Multicast::destroy_groups() { session_->destroy_groups(); }

void Multicast::detach() { link_.close(); }

}  // namespace cepheus::coll
