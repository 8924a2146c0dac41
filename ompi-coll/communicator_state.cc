#include "ompi-coll/communicator_state.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "ompi-coll/abort_job.h"
#include "ompi-coll/counters.h"
#include "ompi-coll/lifetime.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/request.h"

namespace cepheus::coll {

using Shape = Placement::Shape;

namespace {

struct RouteText {
  const char* attended;
  const char* unattended;
};
// As `cepheusctl explain` shows them.
RouteText text_of(Route route) {
  switch (route) {
    case Route::kEager:
      return {"eager lane", "ibcast: eager lane"};
    case Route::kBulk:
      return {"bulk lane", "ibcast: bulk lane"};
    case Route::kHosts:
      return {"hosts", "ibcast: hosts"};
    case Route::kTree:
      return {"point to point", "ibcast: point to point"};
    case Route::kSaved:
      return {"open mpi", "ibcast: open mpi"};
  }
  return {"unknown", "unknown"};
}

}  // namespace

CommunicatorState::CommunicatorState(ompi_communicator_t* comm)
    : all_(Team::all(comm, reserve_tags(comm))), arrangement_(all_) {}

bool CommunicatorState::may_serve(size_t bytes) {
  std::call_once(first_call_, [this] {
    if (!arrangement_.is_known_to_all()) return;
    alike_ = true;
    if (is_unserved()) tell_unserved();
  });
  if (alike_.load(std::memory_order_relaxed) && is_unserved()) return is_time_to_look_again();
  return earned_.load(std::memory_order_relaxed) || is_earned(bytes);
}

bool CommunicatorState::is_earned(size_t bytes) {
  const Parameters& p = parameters();
  const uint64_t calls = ++first_calls_;
  earned_ = p.sets_up_at_once() || calls > static_cast<uint64_t>(p.set_up_after) ||
            (first_bytes_ += bytes) >= p.set_up_bytes;
  if (calls == 1 && !earned_ && all_.is_leader()) {
    opal_output_verbose(1, output_stream(), "cepheus: %s: open mpi's own algorithms: %s",
                        all_.name().c_str(), p.not_earned().c_str());
  }
  return earned_;
}

// Multicast was impossible: a rank had no device, or could not open it. That may be over.
bool CommunicatorState::is_time_to_look_again() {
  constexpr uint64_t kFactor = 4, kMost = 1 << 20;
  if (!arrangement_.may_change() || ++saved_calls_ < look_again_after_) return false;
  saved_calls_ = 0;
  look_again_after_ = std::min(look_again_after_ * kFactor, kMost);
  for (;;) {
    const Guard guard(busy_);
    if (!guard) continue;  // held for moments
    // What was started before goes the old way on all ranks, also where its turn has not come.
    (void)take_incoming();
    for (const auto& started : started_) {
      if (started->course == nullptr) (void)choose_course(*started);
    }
    alike_ = false;
    settled_ = false;
    arrangement_.again();
    return true;
  }
}

// --- Blocking broadcasts.

int CommunicatorState::serve(Broadcast& broadcast) {
  finish_started();
  reap_communicators();
  int rc = OMPI_ERR_WOULD_BLOCK;
  while (rc == OMPI_ERR_WOULD_BLOCK) {
    {
      const Guard guard(busy_);
      if (guard) {
        rc = step(broadcast);
        look_after();
        if (rc != OMPI_ERR_WOULD_BLOCK) break;
      }
    }
    opal_progress();
    if (const auto nap = std::exchange(nap_, {}); nap.count() > 0) std::this_thread::sleep_for(nap);
  }
  alike_ = true;
  if (rc == OMPI_SUCCESS) count(broadcast);
  return rc;
}

int CommunicatorState::step(Broadcast& broadcast) {
  if (broadcast.course == nullptr) {
    const int rc = choose_course(broadcast);
    if (rc != OMPI_SUCCESS) return rc;
  }
  const int rc = broadcast.course->progress();
  if (rc == OMPI_ERR_WOULD_BLOCK) nap_ = broadcast.course->spare_time();
  return rc == OMPI_SUCCESS ? broadcast.payload.error() : rc;
}

int CommunicatorState::choose_course(Broadcast& broadcast) {
  using Otherwise = TeamBroadcast::Otherwise;
  if (!settled_) {
    if (!arrangement_.progress()) return OMPI_ERR_WOULD_BLOCK;
    settle();
  }
  if (placement().shape == Shape::kNone && parameters().chosen_mode() == Mode::kRequire) {
    if (all_.is_leader()) abort_job(all_, placement().reason);
    return OMPI_ERR_WOULD_BLOCK;  // until then
  }
  if (hosts_) {
    broadcast.course = std::make_unique<HostsBroadcast>(
        *hosts_, multicast_.get(), broadcast.payload, broadcast.root, broadcast.attended);
  } else {
    broadcast.course = std::make_unique<TeamBroadcast>(
        all_, multicast_.get(), placement().reason, broadcast.payload, broadcast.root,
        broadcast.attended, broadcast.attended ? Otherwise::kSavedModule : Otherwise::kTree);
  }
  return OMPI_SUCCESS;
}

// It is known who shares a host.
void CommunicatorState::settle() {
  settled_ = true;
  switch (placement().shape) {
    case Shape::kFlat:
      multicast_ = std::make_unique<Multicast>(all_, [this] { call(); });
      break;
    case Shape::kHosts: {
      std::vector<int> host_of(static_cast<size_t>(all_.size()));
      for (size_t host = 0; host < placement().hosts.size(); ++host) {
        for (const int rank : placement().hosts[host])
          host_of[static_cast<size_t>(rank)] = static_cast<int>(host);
      }
      const int own = host_of[static_cast<size_t>(all_.self())];
      hosts_.emplace(Hosts{all_.part(placement().leaders()),
                           all_.part(placement().hosts[static_cast<size_t>(own)]),
                           std::move(host_of)});
      if (hosts_->leaders.self() >= 0)
        multicast_ = std::make_unique<Multicast>(hosts_->leaders, [this] { call(); });
      if (all_.is_leader()) {
        opal_output_verbose(1, output_stream(),
                            "cepheus: %s: %d hosts; multicast among one rank of each, point to "
                            "point inside",
                            all_.name().c_str(), hosts_->leaders.size());
      }
      break;
    }
    case Shape::kOneHost:
    case Shape::kNone:
      tell_unserved();
      break;
  }
  if (multicast_ != nullptr) begin_background_progress();
}

void CommunicatorState::tell_unserved() {
  const int level = std::exchange(told_unserved_, true) ? 2 : 1;
  if (!all_.is_leader()) return;
  opal_output_verbose(level, output_stream(), "cepheus: %s: open mpi's own algorithms: %s",
                      all_.name().c_str(), placement().reason.c_str());
}

// --- Non-blocking ones.

void CommunicatorState::start(std::unique_ptr<Broadcast> broadcast) {
  {
    const std::lock_guard<std::mutex> guard(incoming_mutex_);
    incoming_.push_back(std::move(broadcast));
    if (!in_flight_.exchange(true)) add_in_flight(1);
  }
  std::vector<Finished> finished;
  advance(finished);
  for (const Finished& each : finished) complete_request(each.request, each.rc);
}

void CommunicatorState::finish_started() {
  while (is_in_flight()) {
    std::vector<Finished> finished;
    advance(finished);
    for (const Finished& each : finished) complete_request(each.request, each.rc);
    if (is_in_flight()) opal_progress();
  }
}

bool CommunicatorState::take_incoming() {
  const std::lock_guard<std::mutex> incoming(incoming_mutex_);
  std::move(incoming_.begin(), incoming_.end(), std::back_inserter(started_));
  incoming_.clear();
  if (!started_.empty()) return true;
  if (in_flight_.exchange(false)) add_in_flight(-1);
  return false;
}

void CommunicatorState::advance(std::vector<Finished>& out) {
  const Guard guard(busy_);
  if (!guard) return;
  while (take_incoming()) {
    Broadcast& broadcast = *started_.front();
    const int rc = step(broadcast);
    look_after();
    if (rc == OMPI_ERR_WOULD_BLOCK) return;
    if (rc == OMPI_SUCCESS) count(broadcast);
    out.push_back({broadcast.request, rc});
    started_.pop_front();
  }
}

// --- What was done.

void CommunicatorState::count_saved(bool attended, uint64_t began, size_t bytes, int root) {
  const bool is_early = !earned_ && !(alike_ && is_unserved());
  count(Route::kSaved, attended, is_early ? parameters().not_earned() : placement().reason,
        {began, bytes, root});
}

void CommunicatorState::count(const Broadcast& broadcast) {
  const Course& course = *broadcast.course;
  count(course.route(), broadcast.attended, course.reason(),
        {broadcast.began, broadcast.payload.bytes(), broadcast.root});
}

void CommunicatorState::count(Route route, bool attended, const std::string& reason,
                              const Times& times) {
  counters().add_broadcast(route, attended);
  const RouteText text = text_of(route);
  const std::lock_guard<std::mutex> guard(calls_mutex_);
  calls_.count(comm(), attended ? text.attended : text.unattended, reason.c_str(), times.began,
               times.bytes, times.root);
}

// --- Beside the program's calls.

void CommunicatorState::look_after() {
  if (multicast_ == nullptr) return;
  multicast_->look_after();
  if (multicast_->is_settling()) call();
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
  closing_ = true;
  if (closed_) return true;
  const Guard guard(busy_);
  if (!guard || (multicast_ != nullptr && !multicast_->tear_down())) return false;
  if (multicast_ != nullptr) multicast_->destroy_groups();
  closed_ = true;
  return true;
}

void CommunicatorState::detach() {
  if (multicast_ != nullptr) multicast_->detach();
  (void)take_call();
}

}  // namespace cepheus::coll
