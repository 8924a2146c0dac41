// The queue before a link of a switch: one line for each traffic class, strict priorities, a limit
// in bytes and ECN marks, on the caller's time and without I/O.
//
// The far end may pause data (IEEE 802.1Qbb). The other classes are sent meanwhile.
//
// The driver queues frames that it can't send at once, and takes out the next frame when the link
// is free. A frame that is being sent is no longer in the queue.
#pragma once

#include <array>

#include "net/ecn.h"
#include "net/link.h"
#include "net/pfc.h"
#include "wire/ecn.h"
#include "wire/fifo.h"

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
  // Whether a frame of this class has to wait even if the link is free.
  bool must_wait(TrafficClass of, wire::Instant now) const {
    if (of == TrafficClass::kData && pause_.is_paused(now)) return true;
    for (std::size_t c = 0; c <= static_cast<std::size_t>(of); ++c) {
      if (!lines_[c].items.is_empty()) return true;
    }
    return false;
  }

  // Each class has the whole limit, so that data behind a pause doesn't cause the drop of a HELLO.
  bool has_space(TrafficClass of, wire::Bytes bytes) const {
    return line(of).bytes + bytes <= limit_;
  }
  // Marks the frame to be pushed next, if the queue is long and the frame is ECN-capable.
  bool mark(TrafficClass of, wire::Frame& frame) {
    if (of != TrafficClass::kData || !marker_.marks(line(of).bytes)) return false;
    const auto ip = frame.header().subspan<wire::kIpOffset, wire::Ipv4Header::kSize>();
    if (!wire::mark_congestion(ip)) return false;
    ++counters_.marked;
    return true;
  }

  // Of the link's own frames (kLink) the newest replaces one that still waits, so that a pause
  // never waits behind the end of the last one. These frames have one size and hold no buffer.
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
  // A pause frame has arrived from the far end. False: it does not name data.
  bool on_pause(wire::Instant now, const wire::Frame& frame) {
    return pause_.on_frame(now, frame, rate_);
  }
  // The same without a frame, for a far end that this driver knows itself.
  void pause_data(wire::Instant now, wire::Instant until) { pause_.pause(now, until); }
  const PauseState& pause() const { return pause_; }
  // The earliest time at which a waiting frame may be sent, if the link is free; kNever if none
  // waits.
  wire::Instant ready_at(wire::Instant now) const {
    if (items_ == 0) return wire::kNever;
    const bool only_data = line(TrafficClass::kData).items.size() == items_;
    return only_data && pause_.is_paused(now) ? pause_.until() : now;
  }
  // Takes out the next frame; false if no frame may be sent.
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
    wire::Fifo<Waiting> items;
    wire::Bytes bytes = 0;
  };
  Line& line(TrafficClass of) { return lines_[static_cast<std::size_t>(of)]; }
  const Line& line(TrafficClass of) const { return lines_[static_cast<std::size_t>(of)]; }

  std::array<Line, kTrafficClasses> lines_;  // by falling priority
  wire::Bytes bytes_ = 0;
  std::size_t items_ = 0;
  const wire::BitRate rate_;
  const wire::Bytes limit_;
  EcnMarker marker_;
  PauseState pause_;
  QueueCounters counters_;
};

}  // namespace cepheus::net
