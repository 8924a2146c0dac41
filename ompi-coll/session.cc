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
      again_(again),
      agreement_(team.self(), team.size(), generation) {
  lanes_.push_back(std::make_unique<TeamLane>(team, MCAST_LANE_EAGER,
                                              parameters().eager_unit() + kHeaderRoom,
                                              TeamLane::kAnyMember, again));
  eager().set_arrival(Inbox::on_message, &inbox_);
}

Session::~Session() { destroy_groups(); }

// Buffers go back to the interface before it goes.
void Session::destroy_groups() {
  {
    std::lock_guard<std::mutex> guard(Transport::instance().mutex());
    inbox_.clear();
  }
  for (const auto& lane : lanes_) lane->destroy();
}

TeamLane* Session::bulk(int root) {
  const bool own = parameters().has_sender_groups();
  const int sender = own ? root : TeamLane::kAnyMember;
  const auto bulk = lanes_.begin() + 1;
  const auto at =
      std::find_if(bulk, lanes_.end(), [&](const auto& lane) { return lane->sender() == sender; });
  if (at != lanes_.end()) return at->get();
  if (own && lanes_.end() - bulk >= parameters().max_senders) return nullptr;
  lanes_.push_back(std::make_unique<TeamLane>(team_, MCAST_LANE_BULK, 0, sender, again_));
  return lanes_.back().get();
}

template <typename F>
void Session::each_ready(F f) const {
  for (const auto& lane : lanes_) {
    if (lane->state() == TeamLane::State::kReady) f(*lane);
  }
}

void Session::look_at(const TeamLane& lane) {
  mcast_group_attr_t attr;
  if (!lane.has_failed(attr)) return;
  agreement_.fail(cause_of(attr.cause), rank_text(team_) + ": " + attr.reason);
}

void Session::look() {
  if (agreement_.is_broken()) return;
  each_ready([&](const TeamLane& lane) { look_at(lane); });
}

void Session::stop() {
  stopping_ = true;
  give_up_ = std::chrono::steady_clock::now() + kDrainPatience;
  each_ready([&](TeamLane& lane) { lane.stop(agreement_.reason().c_str()); });
}

void Session::watch(Actions& out) {
  look();
  if (!agreement_.is_broken()) return;
  if (agreement_.is_salvaged()) {
    // A lane that was set up only after the break has carried nothing.
    each_ready([](TeamLane& lane) { lane.destroy(); });
    return;
  }
  if (!stopping_) stop();
  const bool patient = std::chrono::steady_clock::now() < give_up_;
  bool is_drained = true;
  each_ready([&](const TeamLane& lane) { is_drained = is_drained && lane.is_drained(); });
  if (is_drained || !patient) salvage(out);
}

void Session::salvage(Actions& out) {
  {
    std::lock_guard<std::mutex> guard(Transport::instance().mutex());
    inbox_.salvage();
  }
  if (eager().state() == TeamLane::State::kReady) {
    const void* data = nullptr;
    size_t length = 0;
    uint32_t imm = 0;
    for (unsigned i = 0;
         mcast_group_unacknowledged(eager().group(), i, &data, &length, &imm) == MCAST_OK; ++i) {
      const auto* bytes = static_cast<const std::byte*>(data);
      EagerHeader header{};
      std::memcpy(&header, bytes, sizeof header);
      stored_.push_back({header.unit, {bytes, bytes + length}});
    }
  }
  for (const auto& lane : lanes_) lane->destroy();
  counters().add_fallback(agreement_.cause());
  agreement_.salvaged(!stored_.empty(), out);
}

bool Session::is_drained() const {
  if (agreement_.is_broken()) return agreement_.is_salvaged();
  bool clear = true;
  each_ready([&](const TeamLane& lane) { clear = clear && lane.outstanding() == 0; });
  return clear;
}

const std::vector<std::byte>* Session::stored(uint64_t unit) const {
  const auto at = std::find_if(stored_.begin(), stored_.end(),
                               [&](const Stored& each) { return each.unit == unit; });
  return at == stored_.end() ? nullptr : &at->message;
}

}  // namespace cepheus::coll
