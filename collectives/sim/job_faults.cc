// The faults of a simulated job's fabric: the first one, further ones while its failover may be under way,
// and watchdogs that fire once nothing moves any more.
#include <algorithm>

#include "collectives/fakes/fake_clock.h"
#include "collectives/sim/simulated_job.h"

namespace cepheus::coll::sim {

// Those of ranks that have ended all broadcasts of the first lane, and not begun the next one.
std::vector<std::uint32_t> SimulatedJob::ends_between_lanes() const {
  std::vector<std::uint32_t> found = fabric_.ends();
  std::erase_if(found, [&](std::uint32_t end) {
    const Rank& rank = *ranks_[static_cast<std::size_t>(fabric_.rank_of(end))];
    return rank.at != fault_step_ || rank.is_saved || rank.caller.is_calling();
  });
  return found;
}

bool SimulatedJob::is_due(std::uint64_t event) {
  if (inject_at_) return event >= *inject_at_;
  if (plan_.fails_between_lanes) return !ends_between_lanes().empty();
  if (plan_.set_up) return false;
  return furthest() >= fault_step_ && pick(20) == 0;
}

// False: there is nothing to break yet.
bool SimulatedJob::inject() {
  if (fault_ == Fault::kDeath) {
    Rank& rank = *one_of(ranks_);
    if (rank.is_closed) return false;
    rank.is_dead = true;
    mpi_.kill(rank.rank);
    fabric_.kill(rank.rank);
    return true;
  }
  const bool is_between = plan_.fails_between_lanes && !inject_at_;
  const auto ends = is_between                 ? ends_between_lanes()
                    : fault_ == Fault::kFailed ? fabric_.all_ends()
                                               : fabric_.ends();
  if (ends.empty()) return false;
  const std::uint32_t end = one_of(ends);
  switch (fault_) {
    case Fault::kDisconnected:
    case Fault::kDisconnectedForLong:
      fabric_.disconnect(fabric_.rank_of(end));
      break;
    case Fault::kFailed:
      fabric_.fail(end, MCAST_CAUSE_DEVICE, "the port is gone");
      break;
    case Fault::kDeaf:
      fabric_.deafen(end);
      break;
    case Fault::kMute:
      fabric_.mute(end);
      break;
    default:
      break;
  }
  return true;
}

void SimulatedJob::inject_again() {
  constexpr Fault kFaults[] = {Fault::kDisconnected, Fault::kFailed, Fault::kDeaf, Fault::kMute};
  --more_faults_;
  fabric_.reconnect();
  fault_ = kFaults[pick(4)];
  inject_at_ = 0;  // at the first event with something to fail
  injected_at_.reset();
}

void SimulatedJob::end_rnr_retries() {
  const auto ends = fabric_.answered_rnr();
  if (!ends.empty()) {
    fabric_.fail(one_of(ends), MCAST_CAUSE_WORK, "a receiver is not ready: RNR retries exceeded");
  }
}

// Nothing moves: time advances, and watchdogs count the sends that wait since the last time.
void SimulatedJob::fire_watchdogs() {
  fake::now() += std::chrono::milliseconds(500);
  const std::vector<std::uint32_t> now = fabric_.stalled();
  std::erase_if(stalled_, [&](std::uint32_t end) {
    return std::find(now.begin(), now.end(), end) == now.end();
  });
  if (!stalled_.empty() && pick(4) == 0)
    fabric_.fail(one_of(stalled_), MCAST_CAUSE_WATCHDOG, "nobody answers");
  stalled_ = fabric_.stalled();
  idle_ = 0;
}

}  // namespace cepheus::coll::sim
