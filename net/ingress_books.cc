// Entries are numbers in a vector with a list of free ones; the vector grows to the most frames
// that ever waited. A port is paused for bytes or for payload slots, and resumes for slots once a
// quarter of them is free. Only leave() marks a port for take_change(), and each change is returned
// once.
#include "net/ingress_books.h"

#include <cassert>
#include <utility>

namespace cepheus::net {

using wire::PortId;

IngressBooks::EntryId IngressBooks::open(PortId port, wire::Bytes bytes, bool has_slot) {
  buffer_.take(port, bytes);
  slots_[port.value()] += has_slot ? 1 : 0;
  if (free_.empty()) {
    free_.push_back(static_cast<EntryId>(entries_.size()));
    entries_.emplace_back();
  }
  const EntryId entry = free_.back();
  free_.pop_back();
  entries_[entry] = {port, bytes, 1, has_slot};
  return entry;
}

void IngressBooks::leave(EntryId id) {
  Entry& entry = entries_[id];
  assert(entry.holders > 0);
  touched_ = entry.port;
  if (--entry.holders > 0) return;
  buffer_.release(entry.port, entry.bytes);
  slots_[entry.port.value()] -= entry.has_slot ? 1 : 0;
  free_.push_back(id);
}

IngressCounters IngressBooks::totals() const {
  IngressCounters sum;
  for (const IngressCounters& port : counters_) {
    sum.pauses_sent += port.pauses_sent;
    sum.dropped_headroom += port.dropped_headroom;
  }
  return sum;
}

// A paused port resumes when it has a quarter of its slots again.
bool IngressBooks::lacks_slots(PortId port) const {
  if (most_slots_ == 0) return false;
  return slots_[port.value()] >= (buffer_.is_paused(port) ? most_slots_ / 4 * 3 : most_slots_);
}

// A frame that is forwarded at once takes no buffer. So the switch decides about a pause only when
// it knows which copies wait.
std::optional<IngressBooks::PauseChange> IngressBooks::take_change() {
  const PortId port = std::exchange(touched_, PortId());
  if (port == PortId()) return std::nullopt;
  const bool pause = buffer_.wants_pause(port) || lacks_slots(port);
  if (pause == buffer_.is_paused(port)) return std::nullopt;
  buffer_.set_paused(port, pause);
  if (pause) ++counters_[port.value()].pauses_sent;
  return PauseChange{port, pause};
}

}  // namespace cepheus::net
