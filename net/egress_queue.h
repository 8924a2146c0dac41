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
#include "net/pfc.h"
#include "wire/ecn.h"

namespace cepheus::net {

struct QueueCounters {
  std::uint64_t marked = 0;      // copies that a long queue marked
  std::uint64_t high_water = 0;  // the most bytes that ever waited
};

template <typename Item>
class EgressQueue {
 public:
  explicit EgressQueue(const LinkConfig& link)
      : rate_(link.rate), limit_(link.queue_bytes), marker_(EcnMarker::of(link)) {}

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
  // Marks the frame that is to be pushed next, if the queue is long and its sender listens to it.
  bool mark(TrafficClass of, wire::Frame& frame) {
    if (of != TrafficClass::kData || !marker_.marks(line(of).bytes)) return false;
    const auto ip = frame.header().subspan<wire::kIpOffset, wire::Ipv4Header::kSize>();
    if (!wire::mark_congestion(ip)) return false;
    ++counters_.marked;
    return true;
  }

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
  // The far end has sent a pause frame. False: it does not name data.
  bool on_pause(wire::Instant now, const wire::Frame& frame) {
    return pause_.on_frame(now, frame, rate_);
  }
  const PauseState& pause() const { return pause_; }
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
  const wire::BitRate rate_;
  const wire::Bytes limit_;
  EcnMarker marker_;
  PauseState pause_;
  QueueCounters counters_;
};

}  // namespace cepheus::net
