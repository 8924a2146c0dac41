#include "switch-emulator/engine/turn.h"

#include <algorithm>

#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {
namespace {

// RNR timer codes, each two of which double the time: from 10.24 ms to 81.92 ms.
constexpr std::uint8_t kFirstHandoverTimer = 20, kLastHandoverTimer = 26, kDouble = 2;

}  // namespace

const char* to_string(Turn::State state) {
  switch (state) {
    case Turn::State::kSettled:
      return "settled";
    case Turn::State::kRunning:
      return "running";
    case Turn::State::kAbandoned:
      return "abandoned";
  }
  return "unknown";
}

void Turn::begin(Paths& paths, PathNo newcomer, Ipv4 source_ip, Psn first, Psn port_first,
                 bool counts_turns) {
  if (source_ != kNoPath) finish(paths, first - 1, counts_turns);
  previous_ = source_;
  source_ = newcomer;
  source_ip_ = source_ip;
  base_ = first;
  port_base_ = port_first;
  length_ = 0;
  agg_ = first - 1;
  messages_ = 0;
  handover_timer_ = 0;
  *ends_ = MessageEnds();
  naks_.reset();
  gate_.on_admitted();
  paths[newcomer].acked_ = first - 1;
  find_slowest(paths);
  settle("another source has begun");
}

// Past the gate, all of the turn's messages have arrived everywhere.
void Turn::finish(Paths& paths, Psn end, bool counts_turns) {
  Path& source = paths[source_];
  if (source.is_host) {
    const auto packets = static_cast<std::uint32_t>(distance(base_, end + 1));
    if (counts_turns) source.turns_ = source.turns_ + packets;
    source.messages_ = source.messages_ + messages_ + ends_->take(agg_, end);
  }
  source.acked_ = end;
}

bool Turn::on_data(Psn psn, bool ends_message) {
  naks_.on_data(psn);
  gate_.on_old_source();
  if (ends_message) ends_->note(psn, agg_);
  const std::int32_t ahead = distance(sent(), psn);  // at most the data window (has_room_for)
  if (ahead <= 0) return false;
  length_ += ahead;
  ended_ = ends_message;
  settle("new data");
  return true;
}

void Turn::set_acked(Paths& paths, PathNo path, Psn psn) {
  if (paths[path].acked_ == psn) return;
  paths[path].acked_ = psn;
  if (path != slowest_) return;
  if (!find_as_slow_behind(paths, path)) find_slowest(paths);
  settle("all have acknowledged all");
}

Psn Turn::acknowledge() {
  const Psn to = min();
  if (after(to, agg_)) {
    messages_ += ends_->take(agg_, to);
    agg_ = to;
    naks_.on_acknowledged(agg_);
  }
  return agg_;
}

std::optional<Nak> Turn::take_due_nak() {
  const auto nak = naks_.take_due(min());
  if (nak) acknowledge();
  return nak;
}

void Turn::await_handover(Instant now) {
  if (awaits_handover()) return;
  handover_timer_ = kFirstHandoverTimer;
  handover_since_ms_ = handover_repeat_ms_ = milliseconds(now.time_since_epoch());
}

bool Turn::is_handover_past(Instant now, Duration patience) {
  const std::uint32_t ms = milliseconds(now.time_since_epoch());
  if (ms - handover_repeat_ms_ > milliseconds(patience / 2)) handover_since_ms_ = ms;
  handover_repeat_ms_ = ms;
  return ms - handover_since_ms_ > milliseconds(patience);
}

std::uint8_t Turn::next_handover_timer() {
  const std::uint8_t timer = handover_timer_;
  handover_timer_ = std::min<std::uint8_t>(timer + kDouble, kLastHandoverTimer);
  return timer;
}

bool Turn::jump(Paths& paths, std::uint64_t packets) {
  if (source_ == kNoPath || !is_settled() || gate_.holds() || agg_ != sent()) return false;
  const auto steps = static_cast<std::int64_t>(packets);
  for (PathNo i = 0; i < paths.size(); ++i) {
    if (i != source_) paths[i].acked_ = paths[i].acked() + steps;
  }
  min_ = min_ + steps;
  agg_ = agg_ + steps;
  length_ += steps;
  messages_ += static_cast<std::uint32_t>(packets);
  naks_.reset();
  return true;
}

void Turn::on_path_added(Paths& paths) {
  paths.back().acked_ = sent();
  if (slowest_ != kNoPath && !before(sent(), min_)) return;
  slowest_ = static_cast<PathNo>(paths.size() - 1);
  min_ = sent();
}

void Turn::on_path_removed(const Paths& paths, PathNo gone, PathNo last) {
  for (PathNo* const number : {&source_, &previous_}) {
    if (*number == gone) {
      *number = kNoPath;
    } else if (*number == last) {
      *number = gone;
    }
  }
  gate_.renumber(gone, last);
  find_slowest(paths);
  settle("a path has left");
}

// The slowest path is the first of several that are as slow. So the paths before it need no second
// look, and find_slowest() runs only when all have acknowledged one packet more: at most once for each
// packet, which cost as many copies as there are paths.
bool Turn::find_as_slow_behind(const Paths& paths, PathNo path) {
  for (std::size_t i = path + std::size_t{1}; i < paths.size(); ++i) {
    if (i == source_ || paths[i].acked() != min_) continue;
    slowest_ = static_cast<PathNo>(i);
    return true;
  }
  return false;
}

void Turn::find_slowest(const Paths& paths) {
  slowest_ = kNoPath;
  for (PathNo i = 0; i < paths.size(); ++i) {
    if (i == source_) continue;
    if (slowest_ == kNoPath || before(paths[i].acked(), paths[slowest_].acked())) slowest_ = i;
  }
  if (slowest_ != kNoPath) min_ = paths[slowest_].acked();
}

Turn::State Turn::state_now() const {
  if (ended_ && !before(min(), sent())) return State::kSettled;
  return source_ == kNoPath ? State::kAbandoned : State::kRunning;
}

void Turn::settle(const char* reason) { set_state(state_now(), reason); }

void Turn::set_state(State state, const char* reason) {
  if (state == state_) return;
  state_ = state;
  reason_ = reason;
}

void Turn::check_consistent(const Paths& paths, std::size_t max_held) const {
  for (PathNo i = 0; i < paths.size(); ++i) {
    if (i == source_) continue;
    must(!after(paths[i].acked(), sent()), "a path acknowledged more than was sent");
    must(slowest_ != kNoPath && !before(paths[i].acked(), min()), "a path is behind the slowest");
  }
  must(source_ == kNoPath || source_ < paths.size(), "the source is no path");
  must(slowest_ == kNoPath || (slowest_ < paths.size() && slowest_ != source_),
       "the slowest path is none, or the source");
  must(slowest_ == kNoPath || paths[slowest_].acked() == min_, "what all have is out of date");
  must(!after(agg_, sent()), "the source was told more than it sent");
  must(state_ == state_now(), "the turn is in another state than it says");
  gate_.check_consistent(paths.size(), max_held);
}

}  // namespace cepheus::fabric
