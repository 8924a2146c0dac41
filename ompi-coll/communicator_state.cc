#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "ompi-coll/counters.h"
#include "ompi-coll/device_memory.h"
#include "ompi-coll/eager_operation.h"
#include "ompi-coll/module.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll {

namespace {

using Clock = std::chrono::steady_clock;

std::string address_text(uint32_t value) {
  return std::to_string(value >> 24) + '.' + std::to_string(value >> 16 & 255) + '.' +
         std::to_string(value >> 8 & 255) + '.' + std::to_string(value & 255);
}

}  // namespace

CommunicatorState::CommunicatorState(ompi_communicator_t* comm)
    : comm_(comm),
      session_(std::make_unique<Session>(comm, 1, false)),
      link_(comm),
      since_(Clock::now()) {
  look_for_gpu_driver();
}

CommunicatorState::~CommunicatorState() = default;

void CommunicatorState::destroy_groups() {
  link_.close();
  session_->eager().destroy();
  session_->bulk().destroy();
}

template <typename Step>
int CommunicatorState::drive(Step&& step) {
  for (;;) {
    {
      const Guard guard(busy_);
      if (guard) {
        const int rc = step();
        look_after();
        if (rc != OMPI_ERR_WOULD_BLOCK) return rc;
      }
    }
    opal_progress();
    if (const auto nap = std::exchange(nap_, {}); nap.count() > 0) std::this_thread::sleep_for(nap);
  }
}

// --- Set-up.

int CommunicatorState::set_up(Lane& lane) {
  int rc = OMPI_ERR_NOT_AVAILABLE;
  switch (lane.progress()) {
    case Lane::State::kReady:
      rc = link_.open();
      break;
    case Lane::State::kFailed:
      break;
    default:
      return OMPI_ERR_WOULD_BLOCK;
  }
  if (rc == OMPI_SUCCESS) counters().add(Counters::Which::kGroups);
  if (!lane.finds_shared_hosts()) report(lane);
  return rc;
}

void CommunicatorState::report(const Lane& lane) {
  const char* const name = &lane == &session_->eager() ? "eager" : "bulk";
  const bool first = !reported_;
  reported_ = true;
  if (ompi_comm_rank(comm_) != 0) return;
  const bool ready = lane.state() != Lane::State::kFailed;
  if (!ready && parameters().chosen_mode() == Mode::kRequire) abort_job(lane.reason());
  const int level = first || !ready ? 1 : 2;
  if (ready) {
    opal_output_verbose(level, output_stream(),
                        "cepheus: %s (%d ranks): multicast, %s lane on group %s epoch %u",
                        comm_->c_name, ompi_comm_size(comm_), name,
                        address_text(lane.mcst_id()).c_str(), lane.epoch());
  } else {
    opal_output_verbose(level, output_stream(),
                        "cepheus: %s (%d ranks): open mpi's own algorithms for the %s lane: %s",
                        comm_->c_name, ompi_comm_size(comm_), name, lane.reason().c_str());
  }
}

void CommunicatorState::abort_job(const std::string& reason) {
  // Straight to standard error: help texts that travel through mpirun get lost when the abort
  // overtakes them.
  char* text = opal_show_help_string("help-coll-cepheus.txt", "require", 1, comm_->c_name,
                                     ompi_comm_size(comm_), reason.c_str());
  if (text != nullptr) fputs(text, stderr);
  free(text);
  fflush(stderr);
  ompi_rte_abort(1, nullptr);
  _exit(1);
}

std::uint64_t CommunicatorState::retry_after() const {
  Backoff next = backoff_;
  next.ended(Clock::now().time_since_epoch());
  return Backoff::units_for(next.interval(), next_unit_ - since_unit_, Clock::now() - since_);
}

// A session has broken, and the agreed unit for another attempt has come. All ranks are here.
int CommunicatorState::try_again(uint64_t unit) {
  if (next_session_ == nullptr) {
    next_session_ = std::make_unique<Session>(comm_, session_->generation() + 1, true);
    next_session_->eager().set_retry_after(retry_after());
  }
  // The port can be opened anew only when nothing holds it any more.
  if (!session_->agreement().is_salvaged()) return OMPI_ERR_WOULD_BLOCK;
  Lane& lane = next_session_->eager();
  const Lane::State state = lane.progress();
  if (state != Lane::State::kReady && state != Lane::State::kFailed) return OMPI_ERR_WOULD_BLOCK;
  int error = MPI_SUCCESS;
  if (!repairs_.test(error)) return OMPI_ERR_WOULD_BLOCK;

  const auto now = Clock::now();
  backoff_.ended(now.time_since_epoch());
  since_ = now;
  since_unit_ = unit;
  std::unique_ptr<Session> next = std::move(next_session_);
  if (state == Lane::State::kFailed) {
    session_->agreement().set_retry_at(unit + lane.retry_after());
    if (ompi_comm_rank(comm_) == 0) {
      opal_output_verbose(1, output_stream(),
                          "cepheus: %s (%d ranks): still open mpi's own algorithms: %s",
                          comm_->c_name, ompi_comm_size(comm_), lane.reason().c_str());
    }
    return OMPI_SUCCESS;
  }
  backoff_.began(now.time_since_epoch());
  counters().add(Counters::Which::kGroups);
  speed_.forget();
  session_.swap(next);
  std::vector<Held> held;
  held.swap(held_);
  for (const Held& each : held) session_->agreement().receive(each.from, each.message, actions_);
  reported_ = false;
  report(session_->eager());
  return OMPI_SUCCESS;
}

// --- Broadcasts.

int CommunicatorState::broadcast(Payload& payload, int root, size_t& done) {
  done = 0;
  finish_started();
  if (shape_ == Shape::kUnknown && parameters().ranks_per_host > 1) arrange();
  if (shape_ == Shape::kUnknown || shape_ == Shape::kFlat) {
    const int rc = flat_broadcast(payload, root, done);
    if (shape_ == Shape::kFlat) return rc;
  }
  switch (shape_) {
    case Shape::kHierarchy:
      count("hosts", "multicast among one rank of each host");
      return hierarchy_->broadcast(payload, root);
    case Shape::kOneHost:
      count("open mpi", "all ranks are on one host");
      break;
    case Shape::kUnknown:
    case Shape::kFlat:
      break;
  }
  return OMPI_ERR_NOT_AVAILABLE;
}

// Finds out who shares a host; all ranks together.
void CommunicatorState::arrange() {
  std::string why;
  const int rc = Hierarchy::make(comm_, hierarchy_, why);
  shape_ = rc == OMPI_SUCCESS ? Shape::kFlat : Shape::kOneHost;
  if (hierarchy_ != nullptr) shape_ = Shape::kHierarchy;
  if (ompi_comm_rank(comm_) != 0 || shape_ == Shape::kFlat) return;
  if (shape_ == Shape::kHierarchy) {
    opal_output_verbose(1, output_stream(),
                        "cepheus: %s (%d ranks): %d hosts; multicast among one rank of each, open "
                        "mpi's own algorithms inside",
                        comm_->c_name, ompi_comm_size(comm_), hierarchy_->hosts());
  } else {
    opal_output_verbose(1, output_stream(), "cepheus: %s (%d ranks): open mpi's own algorithms: %s",
                        comm_->c_name, ompi_comm_size(comm_), why.c_str());
  }
}

void CommunicatorState::free_hierarchy() {
  if (hierarchy_ != nullptr) hierarchy_->free();
  hierarchy_.reset();
}

int CommunicatorState::flat_broadcast(Payload& payload, int root, size_t& done) {
  const bool small = is_small(payload);
  const size_t unit_bytes = unit_of(small);
  const uint64_t first = take_units(payload);

  // A cut before this call is known to all ranks alike, so they all do the same here.
  const auto cut_known = [&] {
    const auto cut = session_->agreement().cut();
    return cut.has_value() && *cut < first;
  };
  if (cut_known() && first >= session_->agreement().retry_at())
    (void)drive([&] { return try_again(first); });
  if (cut_known()) {
    count("open mpi", session_->agreement().reason());
    return OMPI_ERR_NOT_AVAILABLE;
  }
  Lane& lane = small ? session_->eager() : session_->bulk();
  if (lane.state() == Lane::State::kUnused || lane.state() == Lane::State::kFailed) {
    const bool known = lane.state() == Lane::State::kFailed;
    const int rc = known ? OMPI_ERR_NOT_AVAILABLE : drive([&] { return set_up(lane); });
    if (rc != OMPI_SUCCESS && lane.finds_shared_hosts()) {
      arrange();
      return rc;
    }
    shape_ = Shape::kFlat;
    if (rc != OMPI_SUCCESS) {
      count("open mpi", lane.reason());
      without_[small] = lane.reason();
    }
    if (known) return rc;
    if (rc != OMPI_SUCCESS) {
      // Rank 0 ends the job with one error; the others wait for that here, and never return to the
      // program.
      while (parameters().chosen_mode() == Mode::kRequire) opal_progress();
      return rc;
    }
  }
  int rc = OMPI_SUCCESS;
  for (uint64_t unit = first; done < payload.bytes(); ++unit) {
    const size_t length = std::min(unit_bytes, payload.bytes() - done);
    rc = run({comm_, root, unit, retry_after(), &payload, done, length, false}, small);
    if (rc != OMPI_SUCCESS) break;
    done += length;
  }
  if (rc == OMPI_SUCCESS) {
    counters().add(small ? Counters::Which::kEager : Counters::Which::kBulk);
    count(small ? "eager lane" : "bulk lane", "multicast");
  } else if (rc == OMPI_ERR_NOT_AVAILABLE) {
    count("open mpi", session_->agreement().reason());
  }
  return rc;
}

bool CommunicatorState::is_small(const Payload& payload) {
  return payload.bytes() <= parameters().eager_bytes();
}

size_t CommunicatorState::unit_of(bool small) {
  return small ? parameters().eager_unit() : BulkOperation::kUnit;
}

uint64_t CommunicatorState::take_units(const Payload& payload) {
  const size_t unit_bytes = unit_of(is_small(payload));
  const uint64_t first = next_unit_;
  next_unit_ += (payload.bytes() + unit_bytes - 1) / unit_bytes;
  ++call_number_;
  return first;
}

std::unique_ptr<Operation> CommunicatorState::make_operation(const Call& call, bool small) {
  if (small) return std::make_unique<EagerOperation>(call, *session_);
  return std::make_unique<BulkOperation>(call, *session_);
}

void CommunicatorState::count(const char* path, const std::string& reason) {
  const std::lock_guard<std::mutex> guard(calls_mutex_);
  calls_.count(comm_, path, reason.c_str());
}

int CommunicatorState::run(const Call& call, bool small) {
  std::unique_ptr<Operation> operation = make_operation(call, small);
  return drive([&] {
    current_ = operation.get();
    const int rc = operation->progress(actions_);
    if (rc == OMPI_ERR_WOULD_BLOCK) {
      nap_ = operation->spare_time();
      return rc;
    }
    if (rc == OMPI_SUCCESS && !small && call.is_root())
      note_speed(call, static_cast<BulkOperation&>(*operation));
    current_ = nullptr;
    operation.reset();
    return rc;
  });
}

void CommunicatorState::note_speed(const Call& call, const BulkOperation& operation) {
  const auto time = operation.transfer_time();
  if (time.count() == 0 || session_->agreement().is_broken()) return;
  const double usual = speed_.usual(call.length);
  if (!speed_.note(call.length, time) || !parameters().falls_back_when_slow()) return;
  char text[160];
  snprintf(text, sizeof text,
           "rank %d: broadcasts of %zu bytes take more than twice as long as usual (%.0f MB/s)",
           ompi_comm_rank(comm_), call.length, usual / 1e6);
  session_->agreement().fail(Cause::kSlow, text);
}

// --- Beside the program's calls.

void CommunicatorState::watch() {
  if (!link_.is_open()) return;
  const Guard guard(busy_);
  if (guard) look_after();
}

void CommunicatorState::look_after() {
  if (!link_.is_open()) return;
  receive();
  session_->watch(actions_);
  // Acting may make more to do.
  while (!actions_.empty()) {
    Actions now;
    now.swap(actions_);
    take(now);
  }
}

void CommunicatorState::receive() {
  int from = 0;
  ControlMessage message{};
  while (link_.receive(from, message)) {
    if (message.generation == session_->generation()) {
      session_->agreement().receive(from, message, actions_);
    } else if (message.generation > session_->generation()) {
      held_.push_back({from, message});
    }
  }
}

void CommunicatorState::take(const Actions& actions) {
  for (const Action& action : actions) {
    switch (action.kind) {
      case Action::Kind::kSend:
        if (action.to == Action::kEveryone) announce(action.message);
        (void)link_.send(action.to, action.message);
        break;
      case Action::Kind::kServeStored:
        serve_stored(action.to, action.message.unit);
        break;
      case Action::Kind::kServeCurrent:
        if (current_ != nullptr) (void)current_->serve(action.to, action.message.value);
        break;
    }
  }
}

void CommunicatorState::serve_stored(int to, uint64_t unit) {
  const std::vector<std::byte>* message = session_->stored(unit);
  if (message != nullptr) {
    counters().add(Counters::Which::kServed);
    (void)repairs_.send(message->data(), message->size(), to, Tag::kRepair, comm_);
    return;
  }
  if (gone_ == nullptr) gone_ = std::make_unique<EagerHeader>();
  *gone_ = {unit, EagerHeader::kGone, 0, 0};
  (void)repairs_.send(gone_.get(), sizeof *gone_, to, Tag::kRepair, comm_);
}

// This rank is about to tell the others that the group is given up.
void CommunicatorState::announce(const ControlMessage& message) {
  if (parameters().chosen_mode() == Mode::kRequire) abort_job(message.reason);
  const char* comm = comm_->c_name;
  const int size = ompi_comm_size(comm_);
  const auto call = static_cast<unsigned long long>(call_number_.load());
  if (message.kind == ControlMessage::Kind::kCut) {
    opal_output_verbose(1, output_stream(),
                        "cepheus: %s (%d ranks): open mpi's own algorithms from broadcast %llu on "
                        "(%s): %s; multicast is tried again after %llu more",
                        comm, size, call, name(message.cause), message.reason,
                        static_cast<unsigned long long>(message.value - message.unit));
  } else {
    opal_output_verbose(1, output_stream(),
                        "cepheus: %s (%d ranks): the group broke (%s), what is in flight after "
                        "broadcast %llu began is completed point to point: %s",
                        comm, size, name(message.cause), call, message.reason);
  }
}

// --- Tear-down.

bool CommunicatorState::tear_down() {
  watch();
  const int size = ompi_comm_size(comm_);
  const bool leader = ompi_comm_rank(comm_) == 0;
  int error = MPI_SUCCESS;
  switch (tear_down_) {
    case TearDown::kNot:
    case TearDown::kDraining:
      tear_down_ = TearDown::kDraining;
      if (!session_->is_drained()) return false;
      flags_ = std::make_unique<char[]>(static_cast<size_t>(size));
      if (leader) {
        for (int rank = 1; rank < size; ++rank)
          (void)messages_.receive(&flags_[rank], 1, rank, Tag::kDone, comm_);
      } else {
        (void)messages_.send(&flags_[0], 1, 0, Tag::kDone, comm_);
      }
      tear_down_ = TearDown::kGathering;
      return false;
    case TearDown::kGathering:
      if (!messages_.test(error)) return false;
      if (leader) {
        for (int rank = 1; rank < size; ++rank)
          (void)messages_.send(&flags_[0], 1, rank, Tag::kRelease, comm_);
      } else {
        (void)messages_.receive(&flags_[0], 1, 0, Tag::kRelease, comm_);
      }
      tear_down_ = TearDown::kReleasing;
      return false;
    case TearDown::kReleasing:
      if (!messages_.test(error) || !repairs_.test(error)) return false;
      tear_down_ = TearDown::kDone;
      return true;
    case TearDown::kDone:
      return true;
  }
  return true;
}

}  // namespace cepheus::coll
