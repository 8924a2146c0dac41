#include "ompi-coll/session.h"

#include <algorithm>
#include <cstring>

#include "ompi-coll/counters.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll {

namespace {

constexpr size_t kHeaderRoom = 64;  // for the header, rounded to a cache line
// A device that died may never complete what was posted.
constexpr std::chrono::seconds kDrainPatience{1};

Cause cause_of(mcast_cause_t cause) {
  switch (cause) {
    case MCAST_CAUSE_WATCHDOG:
      return Cause::kWatchdog;
    case MCAST_CAUSE_DEVICE:
      return Cause::kDevice;
    case MCAST_CAUSE_LEADER:
      return Cause::kLeader;
    case MCAST_CAUSE_NONE:
    case MCAST_CAUSE_REGISTRATION:
    case MCAST_CAUSE_WORK:
    case MCAST_CAUSE_STOPPED:
      break;
  }
  return Cause::kWork;
}

}  // namespace

Session::Session(const Team& team, uint32_t generation, bool again)
    : team_(team),
      generation_(generation),
      eager_(team, MCAST_LANE_EAGER, parameters().eager_unit() + kHeaderRoom, again),
      bulk_(team, MCAST_LANE_BULK, 0, again),
      agreement_(team.self(), team.size(), generation) {
  eager_.set_arrival(Inbox::on_message, &inbox_);
}

Session::~Session() { destroy_groups(); }

// Buffers go back to the interface before it goes.
void Session::destroy_groups() {
  {
    std::lock_guard<std::mutex> guard(Transport::instance().mutex());
    inbox_.clear();
  }
  eager_.destroy();
  bulk_.destroy();
}

void Session::look_at(const TeamLane& lane) {
  mcast_group_attr_t attr;
  if (lane.state() != TeamLane::State::kReady || !lane.has_failed(attr)) return;
  agreement_.fail(cause_of(attr.cause), rank_text(team_) + ": " + attr.reason);
}

void Session::look() {
  if (agreement_.is_broken()) return;
  look_at(eager_);
  look_at(bulk_);
}

void Session::stop() {
  stopping_ = true;
  give_up_ = std::chrono::steady_clock::now() + kDrainPatience;
  for (TeamLane* lane : {&eager_, &bulk_}) {
    if (lane->state() == TeamLane::State::kReady) lane->stop(agreement_.reason().c_str());
  }
}

void Session::watch(Actions& out) {
  look();
  if (!agreement_.is_broken()) return;
  if (agreement_.is_salvaged()) {
    // A lane that was set up only after the break has carried nothing.
    for (TeamLane* lane : {&eager_, &bulk_}) {
      if (lane->state() == TeamLane::State::kReady) lane->destroy();
    }
    return;
  }
  if (!stopping_) stop();
  const bool patient = std::chrono::steady_clock::now() < give_up_;
  for (const TeamLane* lane : {&eager_, &bulk_}) {
    if (lane->state() == TeamLane::State::kReady && !lane->is_drained() && patient) return;
  }
  salvage(out);
}

void Session::salvage(Actions& out) {
  {
    std::lock_guard<std::mutex> guard(Transport::instance().mutex());
    inbox_.salvage();
  }
  if (eager_.state() == TeamLane::State::kReady) {
    const void* data = nullptr;
    size_t length = 0;
    uint32_t imm = 0;
    for (unsigned i = 0;
         mcast_group_unacknowledged(eager_.group(), i, &data, &length, &imm) == MCAST_OK; ++i) {
      const auto* bytes = static_cast<const std::byte*>(data);
      EagerHeader header{};
      std::memcpy(&header, bytes, sizeof header);
      stored_.push_back({header.unit, {bytes, bytes + length}});
    }
  }
  eager_.destroy();
  bulk_.destroy();
  counters().add_fallback(agreement_.cause());
  agreement_.salvaged(!stored_.empty(), out);
}

bool Session::is_drained() const {
  if (agreement_.is_broken()) return agreement_.is_salvaged();
  const auto clear = [](const TeamLane& lane) {
    return lane.state() != TeamLane::State::kReady || lane.outstanding() == 0;
  };
  return clear(eager_) && clear(bulk_);
}

const std::vector<std::byte>* Session::stored(uint64_t unit) const {
  const auto at = std::find_if(stored_.begin(), stored_.end(),
                               [&](const Stored& each) { return each.unit == unit; });
  return at == stored_.end() ? nullptr : &at->message;
}

}  // namespace cepheus::coll
