#include "fabric-sim/core/cable.h"

#include <cassert>
#include <cstring>

#include "wire/icrc.h"

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

}  // namespace

Cable::Cable(Simulator& simulator, BufferPool& pool, std::string name, const net::LinkConfig& link,
             FrameSink& to, wire::PortId port)
    : simulator_(simulator),
      pool_(pool),
      name_(std::move(name)),
      link_(link),
      to_(to),
      port_(port) {}

void Cable::send(Instant now, Frame frame) {
  if (frame.external != nullptr && frame.ref == wire::kNoBuffer) {
    const wire::BufferRef copy = pool_.acquire();
    assert(frame.payload_len <= pool_.bytes(copy).size());
    std::memcpy(pool_.bytes(copy).data(), frame.external, frame.payload_len);
    frame.set_external_payload(pool_.bytes(copy).first(frame.payload_len), copy);
  }
  const net::Passage passage = link_.offer(now, frame.size());
  simulator_.trace().frame(now, name_, name_of(passage.drop), frame);
  if (passage.copies == 0) {
    pool_.unref(frame.ref);
    return;
  }
  if (passage.copies == 2) {
    simulator_.trace().note(now, name_, "doubles it");
    pool_.ref(frame.ref);
    deliver_at(passage.arrival[1], frame);
  }
  if (passage.corrupt) {
    simulator_.trace().note(now, name_, "damages bit", passage.corrupt_bit);
    if (!damage(frame, passage.corrupt_bit)) {
      ++dropped_unreadable_;
      return;
    }
  }
  deliver_at(passage.arrival[0], frame);
}

void Cable::deliver_at(Instant at, const Frame& frame) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot] = frame;
  simulator_.schedule(at, *this, slot);
}

void Cable::on_event(Instant now, std::uint64_t slot) {
  const Frame frame = slots_[slot];
  free_.push_back(static_cast<std::uint32_t>(slot));
  ++delivered_;
  to_.receive(now, port_, frame);
}

// Turns one bit over in a copy: other paths share the payload. Memory trusts a deferred ICRC, a
// damaged wire must not: it is made first. False if the result is no frame any more; its buffer is
// given back then.
bool Cable::damage(Frame& frame, std::uint32_t bit) {
  wire::seal_icrc(frame);
  const wire::BufferRef copy = pool_.acquire();
  const auto room = pool_.bytes(copy);
  const std::size_t size = frame.to_bytes(room);
  assert(size != 0 && bit / 8 < size);
  room[bit / 8] = static_cast<std::uint8_t>(room[bit / 8] ^ (1u << bit % 8));
  pool_.unref(frame.ref);
  const auto damaged = Frame::from_bytes(room.first(size), copy);
  if (!damaged) {
    pool_.unref(copy);
    return false;
  }
  frame = *damaged;
  frame.ref = copy;
  return true;
}

bool Cable::is_balanced() const {
  const net::LinkCounters& c = link_.counters();
  return c.frames + c.duplicated == delivered_ + c.dropped_loss + c.dropped_queue_full +
                                        c.dropped_down + dropped_unreadable_ + in_flight();
}

}  // namespace cepheus::sim
