// What waits before a link of a switch: a queue for each class of traffic, strict priorities, bytes, a
// limit and ECN marks, on the caller's time and without I/O.
//
// The far end may pause data (IEEE 802.1Qbb); the other classes go on then.
//
// The driver keeps the link busy: it puts into the queue what can't be sent at once, and takes the
// next one out when the link is free. A frame that is being sent does not wait any more.
#pragma once

#include <array>

#include "net/ecn.h"
#include "net/fifo.h"
#include "net/link.h"
#include "net/pause_state.h"
#include "net/traffic_class.h"

namespace cepheus::net {

struct QueueCounters {
  std::uint64_t marked = 0;           // copies that a long queue marked
  std::uint64_t high_water = 0;       // the most bytes that ever waited
  std::uint64_t pauses_received = 0;  // not their repeats
};

template <typename Item>
class EgressQueue {
 public:
  explicit EgressQueue(const LinkConfig& link)
      : limit_(link.queue_bytes), marker_(EcnMarker::of(link)) {}

  bool is_empty() const { return items_ == 0; }
  std::size_t items() const { return items_; }
  wire::Bytes bytes() const { return bytes_; }
  wire::Bytes bytes(TrafficClass of) const { return line(of).bytes; }
  // Whether a frame of this class has to wait, were the link free.
  bool must_wait(TrafficClass of, wire::Instant now) const {
    if (of == TrafficClass::kData && pause_.is_paused(now)) return true;
    for (std::size_t c = 0; c <= static_cast<std::size_t>(of); ++c) {
      if (!lines_[c].items.is_empty()) return true;
    }
    return false;
  }

  // Each class has the limit for itself: a HELLO does not fall over data that waits for a pause's end.
  bool has_room(TrafficClass of, wire::Bytes bytes) const {
    return line(of).bytes + bytes <= limit_;
  }
  // Whether the frame that is to be pushed next is to be marked, if its sender listens to marks.
  bool wants_mark(TrafficClass of) {
    return of == TrafficClass::kData && marker_.marks(line(of).bytes);
  }
  void count_mark() { ++counters_.marked; }

  // Of a link's own frames the last word counts: it takes the place of one that still waits, so that
  // a pause never waits behind the end of the one before. They are of one size and hold no buffer.
  void push(TrafficClass of, const Item& item, wire::Bytes bytes) {
    Line& to = line(of);
    if (of == TrafficClass::kLink && !to.items.is_empty()) {
      to.items.back().item = item;
      return;
    }
    to.items.push({item, bytes});
    to.bytes += bytes;
    bytes_ += bytes;
    ++items_;
    counters_.high_water = std::max(counters_.high_water, bytes_);
  }
  // Data is silent until then; not after `now`: it goes on.
  void pause(wire::Instant now, wire::Instant until) {
    if (until > now && !pause_.is_paused(now)) ++counters_.pauses_received;
    pause_.set(now, until);
  }
  wire::Instant paused_until() const { return pause_.until(); }  // not after now: it is not
  wire::Duration paused_time(wire::Instant now) const { return pause_.time(now); }
  // When somebody may go, were the link free; kNever if nobody waits.
  wire::Instant ready_at(wire::Instant now) const {
    if (items_ == 0) return wire::kNever;
    const bool only_data = line(TrafficClass::kData).items.size() == items_;
    return only_data && pause_.is_paused(now) ? pause_.until() : now;
  }
  // Takes out who is next; false if nobody may go.
  bool pop(wire::Instant now, Item& item) {
    if (ready_at(now) > now) return false;
    for (Line& from : lines_) {
      if (from.items.is_empty()) continue;
      const Waiting& first = from.items.front();
      item = first.item;
      from.bytes -= first.bytes;
      bytes_ -= first.bytes;
      --items_;
      from.items.pop();
      return true;
    }
    return false;
  }

  const QueueCounters& counters() const { return counters_; }

 private:
  struct Waiting {
    Item item;
    wire::Bytes bytes;
  };
  struct Line {
    Fifo<Waiting> items;
    wire::Bytes bytes = 0;
  };
  Line& line(TrafficClass of) { return lines_[static_cast<std::size_t>(of)]; }
  const Line& line(TrafficClass of) const { return lines_[static_cast<std::size_t>(of)]; }

  std::array<Line, kTrafficClasses> lines_;  // the first goes first
  wire::Bytes bytes_ = 0;
  std::size_t items_ = 0;
  const wire::Bytes limit_;
  EcnMarker marker_;
  PauseState pause_;
  QueueCounters counters_;
};

}  // namespace cepheus::net
