// A frame that arrives no sooner than the last one joins the line, a ring with one event for its
// first frame. A frame that overtakes or is duplicated gets a slot and an event of its own.
//
// With a queue, a frame goes to the link at once only if the link is free and nothing is before it.
// A damaged frame is a copy, whose ICRC is computed before the bit is flipped. One that is no frame
// any more is dropped and counted. Pause frames meet no faults.
#include "fabric-sim/core/cable.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "fabric-sim/core/recorder.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::sim {

using net::LinkDrop;
using wire::Frame;

namespace {

const char* name_of(LinkDrop drop) {
  switch (drop) {
    case LinkDrop::kNone:
      break;
    case LinkDrop::kLoss:
      return "loses";
    case LinkDrop::kQueueFull:
      return "has no room for";
    case LinkDrop::kDown:
      return "is down for";
  }
  return "carries";
}

bool is_whole(const Frame& frame) {
  if (wire::RoceHeaders::parse(frame)) return wire::check_icrc(frame);
  return wire::UdpDatagram::parse(frame).has_value();
}

}  // namespace

Cable::Cable(Simulator& simulator, BufferPool& pool, std::string name, const net::LinkConfig& link,
             FrameSink& to, wire::PortId port)
    : simulator_(simulator),
      pool_(pool),
      to_(to),
      port_(port),
      link_(link),
      name_(std::move(name)) {}

bool Cable::send(Instant now, const Frame& frame, net::IngressBooks::EntryId entry,
                 bool is_reserved) {
  if (frame.external != nullptr && frame.ref == wire::kNoBuffer) {
    return send(now, pool_.owned(frame), entry, is_reserved);
  }
  if (queue_ != nullptr) return enqueue(now, frame, entry, is_reserved);
  put_on_link(now, frame);
  return false;
}

// A frame does not wait if the link is free and no frame is before it.
bool Cable::enqueue(Instant now, const Frame& frame, net::IngressBooks::EntryId entry,
                    bool is_reserved) {
  const net::TrafficClass of = net::class_of(frame);
  if (link_.free_at() <= now && !queue_->must_wait(of, now)) {
    put_on_link(now, frame);
    return false;
  }
  const bool is_lossless = entry != net::IngressBooks::kNone || is_reserved;
  if (!is_lossless && !queue_->has_space(of, frame.size())) {
    link_.refuse(frame.size());
    if (Trace& trace = simulator_.trace(); !trace.is_off()) {
      trace.frame(now, name_, name_of(LinkDrop::kQueueFull), frame);
    }
    pool_.release(frame.ref);
    return false;
  }
  Waiting waiting{frame, entry};
  if (queue_->mark(of, waiting.frame)) {
    simulator_.trace().note(now, name_, "marks the frame behind", queue_->bytes(of));
  }
  queue_->push(of, waiting, frame.size());
  arrange_transmission(now);
  return true;
}

// A frame that arrived at this very moment may have found the link free.
void Cable::transmit(Instant now) {
  if (transmit_at_ <= now) transmit_at_ = wire::kNever;
  Waiting next;
  if (link_.free_at() <= now && queue_->pop(now, next)) {
    put_on_link(now, next.frame);
    if (next.entry != net::IngressBooks::kNone) watch_->on_copy_left(now, next.entry);
  }
  arrange_transmission(now);
}

void Cable::arrange_transmission(Instant now) {
  const Instant ready = queue_->ready_at(now);
  if (ready == wire::kNever) return;
  const Instant at = std::max(ready, link_.free_at());
  if (at >= transmit_at_) return;
  transmit_at_ = at;
  simulator_.schedule(at, *this, kTransmit);
}

void Cable::on_pause(Instant now, const Frame& frame) {
  if (queue_ == nullptr || !queue_->on_pause(now, frame)) return;
  simulator_.trace().note(now, name_, queue_->pause().is_paused(now) ? "is paused" : "goes on");
  arrange_transmission(now);
}

void Cable::put_on_link(Instant now, const Frame& frame) {
  const net::Passage passage = wire::PauseFrame::is_one(frame)
                                   ? link_.offer_control(now, frame.size())
                                   : link_.offer(now, frame.size());
  if (Trace& trace = simulator_.trace(); !trace.is_off()) {
    trace.frame(now, name_, name_of(passage.drop), frame);
    if (trace.recorder() != nullptr && passage.drop != LinkDrop::kNone) {
      trace.recorder()->lost(now, name_, name_of(passage.drop), frame);
    }
  }
  if (passage.copies == 0) return pool_.release(frame.ref);
  if (passage.copies == 2) {
    simulator_.trace().note(now, name_, "duplicates it");
    pool_.hold(frame.ref);
    deliver_at(passage.arrival[1], frame);
  }
  if (!passage.corrupt) return deliver_at(passage.arrival[0], frame);
  simulator_.trace().note(now, name_, "damages bit", passage.corrupt_bit);
  Frame damaged = frame;
  if (damage(damaged, passage.corrupt_bit)) {
    deliver_at(passage.arrival[0], damaged);
  } else {
    ++dropped_unreadable_;
  }
}

bool Cable::carries_roce() const {
  const auto is_roce = [](const Frame& frame) { return frame.icrc_state != wire::Icrc::kNone; };
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (is_roce(line_[(first_ + i) & (line_.size() - 1)])) return true;
  }
  for (std::uint32_t i = 0; i < delayed_.size(); ++i) {
    if (is_roce(delayed_[i]) && std::ranges::count(free_, i) == 0) return true;
  }
  return waiting() > 0;
}

void Cable::deliver_at(Instant at, const Frame& frame) {
  if (count_ > 0 && at < last_arrival_) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(delayed_.size()));
      delayed_.emplace_back();
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    delayed_[place] = frame;
    return simulator_.schedule(at, *this, place);
  }
  if (count_ == line_.size()) grow();
  last_arrival_ = at;
  const std::size_t place = (first_ + count_) & (line_.size() - 1);
  arrivals_[place] = at;
  line_[place] = frame;
  if (count_++ == 0) simulator_.schedule(at, *this, kFirst);
}

void Cable::grow() {
  const auto turn_to_front = [this](auto& ring) {
    std::rotate(ring.begin(), ring.begin() + first_, ring.end());
    ring.resize(std::max<std::size_t>(4, 2 * ring.size()));
  };
  turn_to_front(arrivals_);
  turn_to_front(line_);
  first_ = 0;
}

void Cable::on_event(Instant now, std::uint64_t what) {
  if (what == kTransmit) return transmit(now);
  ++delivered_;
  // Fetches the receiver into the cache while the next event is scheduled.
  const auto* const receiver = reinterpret_cast<const char*>(&to_);
  for (int line = 0; line < 4; ++line) __builtin_prefetch(receiver + 64 * line);
  if (what != kFirst) {
    const Frame frame = delayed_[what];
    free_.push_back(static_cast<std::uint32_t>(what));
    return to_.receive(now, port_, frame);
  }
  const auto next = static_cast<std::uint32_t>((first_ + 1) & (line_.size() - 1));
  if (count_ > 1) simulator_.schedule(arrivals_[next], *this, kFirst);
  // The frame stays in its slot during the call, because its receiver never sends by this cable.
  to_.receive(now, port_, line_[first_]);
  first_ = next;
  --count_;
}

// Flips one bit in a copy, because other paths share the payload. Memory trusts a deferred ICRC,
// but a damaged wire must not, so the ICRC is computed first. False if the result is no frame any
// more; its buffer is then released. A frame that another cable has damaged never becomes whole:
// flipping the same bit back would give a packet that no switch has seen, and UDP's checksum can't
// see a second flip 16 bits on.
bool Cable::damage(Frame& frame, std::uint32_t bit) {
  wire::seal_icrc(frame);
  const bool was_whole = is_whole(frame);
  const wire::BufferRef copy = pool_.acquire();
  const auto bytes = pool_.bytes(copy);
  const std::size_t size = frame.to_bytes(bytes);
  assert(size != 0 && bit / 8 < size);
  const auto turned = static_cast<std::uint8_t>(1u << bit % 8);
  bytes[bit / 8] ^= turned;
  pool_.release(frame.ref);
  auto damaged = Frame::from_bytes(bytes.first(size), copy);
  if (!was_whole && damaged && is_whole(*damaged)) {
    bytes[bit / 8] ^= turned;
    damaged = Frame::from_bytes(bytes.first(size), copy);
  }
  if (!damaged) {
    pool_.release(copy);
    return false;
  }
  frame = *damaged;
  frame.ref = copy;
  return true;
}

bool Cable::is_balanced() const {
  const net::LinkCounters& c = link_.counters();
  return c.frames + c.duplicated == delivered_ + c.dropped_loss + c.dropped_queue_full +
                                        c.dropped_down + dropped_unreadable_ + under_way();
}

}  // namespace cepheus::sim
