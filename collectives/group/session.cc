// The two lanes of a team between one set-up and their end. look() notices a failed lane, stop()
// ends both, and end_drain() hands over what has arrived: messages in the inbox are copied, and
// small units that not all members have acknowledged are stored for LACK. The drain ends when
// nothing is posted any more, or after 1 s inside MPI: a dead device returns no work.
#include "collectives/group/session.h"

#include <mcast/recovery.h>

#include <algorithm>
#include <cstring>

#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "collectives/core/rules.h"
#include "wire/situation.h"

namespace cepheus::coll {

namespace {

constexpr size_t kHeaderBytes = 64;  // for the header, rounded to a cache line

}  // namespace

Session::Session(const Team& team, uint32_t generation, bool again)
    : team_(team),
      generation_(generation),
      eager_(team, MCAST_LANE_EAGER, parameters().eager_unit() + kHeaderBytes, again),
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

void Session::look() {
  for (const TeamLane* lane : {&eager_, &bulk_}) {
    mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
    if (agreement_.has_failed()) return;
    if (lane->state() == TeamLane::State::kReady && lane->has_failed(attr))
      agreement_.fail(cause_of(attr.cause), rank_text(team_) + ": " + attr.reason);
  }
}

void Session::stop() {
  stopping_ = true;
  drain_time_.begin();
  for (TeamLane* lane : {&eager_, &bulk_}) lane->stop(agreement_.reason().c_str());
}

void Session::watch(Actions& out) {
  look();
  if (!agreement_.has_failed() || agreement_.is_drained()) return;
  if (!stopping_) stop();
  const bool patient = !drain_time_.is_over();
  const bool is_drained = eager_.is_drained() && bulk_.is_drained();
  if (!is_drained && !patient) CEPHEUS_SITUATION("a device does not return posted work in time");
  if (is_drained || !patient || !rules.drain) end_drain(out);
}

void Session::end_drain(Actions& out) {
  {
    std::lock_guard<std::mutex> guard(Transport::instance().mutex());
    rules.inbox_outlives_lane ? inbox_.keep() : inbox_.clear();
  }
  if (eager().state() == TeamLane::State::kReady && rules.unacknowledged_is_kept) {
    const void* data = nullptr;
    size_t length = 0;
    uint32_t imm = 0;
    for (unsigned i = 0;
         mcast_group_unacknowledged(eager().group(), i, &data, &length, &imm) == MCAST_OK; ++i) {
      const auto* bytes = static_cast<const std::byte*>(data);
      EagerHeader header{};
      std::memcpy(&header, bytes, sizeof header);
      CEPHEUS_SITUATION("a group fails, and keeps a unit that not all have acknowledged");
      stored_.push_back({header.unit, {bytes, bytes + length}});
    }
  }
  eager_.destroy();
  bulk_.destroy();
  counters().add_fallback(agreement_.cause());
  agreement_.drained(!stored_.empty(), out);
}

bool Session::is_drained() const {
  if (agreement_.has_failed()) return agreement_.is_drained();
  return eager_.outstanding() + bulk_.outstanding() == 0;
}

void Session::note_eager_sent(uint64_t unit) { recent_[eager_sent_++ % recent_.size()] = unit; }

// Sends end in their order, so the outstanding ones are the last ones.
bool Session::is_delivered(uint64_t unit) const {
  if (eager_.state() != TeamLane::State::kReady) return true;  // it was a large one
  const uint64_t outstanding = std::min<uint64_t>(eager_.outstanding(), eager_sent_);
  for (uint64_t i = eager_sent_ - outstanding; i < eager_sent_; ++i) {
    if (recent_[i % recent_.size()] == unit) return false;
  }
  return true;
}

const std::vector<std::byte>* Session::stored(uint64_t unit) const {
  const auto at = std::ranges::find(stored_, unit, &Stored::unit);
  return at == stored_.end() ? nullptr : &at->message;
}

}  // namespace cepheus::coll
