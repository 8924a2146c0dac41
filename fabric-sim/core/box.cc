// At most two events are under way: kTake ends the core's time for a frame, and kSend the port's
// time for a copy. Order on arrival: too long, swallowed, then the receive ring. With swapped
// copies a frame draws one of two queues, and the port serves them in turn.
//
// The transmit ring is at least as large as the number of ports. Each drop is counted and gives the
// buffer back.
#include "fabric-sim/core/box.h"

#include <algorithm>

#include "wire/roce.h"

namespace cepheus::sim {

Box::Box(Simulator& simulator, BufferPool& pool, Core& core, const BoxManners& manners,
         std::size_t ports, std::uint64_t seed)
    : simulator_(simulator),
      pool_(pool),
      core_(core),
      manners_(manners),
      ports_(static_cast<std::uint32_t>(ports)),
      ring_(manners.transmit_ring == 0 ? 0 : std::max(manners.transmit_ring, ports_)),
      random_(seed) {}

void Box::drop(std::uint64_t& count, const wire::Frame& frame) {
  ++count;
  pool_.release(frame.ref);
}

void Box::receive(Instant now, wire::PortId port, const wire::Frame& frame) {
  if (manners_.longest_frame != 0 && frame.size() > manners_.longest_frame) {
    drop(drops_.too_long, frame);
  } else if (manners_.swallows_roce && wire::RoceHeaders::parse(frame)) {
    drop(drops_.swallowed, frame);
  } else if (manners_.receive_ring == 0) {
    core_.take_from_box(now, port, frame);
  } else if (received_.size() >= manners_.receive_ring) {
    drop(drops_.receive_ring, frame);
  } else {
    received_.push_back({port, pool_.owned(frame)});
    arrange_take(now);
  }
}

void Box::transmit(Instant now, Cable& cable, const wire::Frame& frame) {
  if (ring_ == 0 && !manners_.swaps_copies) {
    cable.send(now, frame);
  } else if (ring_ != 0 && waiting() >= ring_) {
    drop(drops_.transmit_ring, frame);
  } else {
    const bool is_second = manners_.swaps_copies && random_.chance(0.5);
    copies_[is_second ? 1 : 0].push_back({&cable, pool_.owned(frame)});
    arrange_send(now);
  }
}

void Box::arrange_take(Instant now) {
  if (takes_ || received_.empty() || (manners_.waits_for_space && !has_space())) return;
  takes_ = true;
  core_free_at_ = std::max(core_free_at_, now) + manners_.per_frame;
  simulator_.schedule(core_free_at_, *this, kTake);
}

void Box::arrange_send(Instant now) {
  if (sends_ || waiting() == 0) return;
  sends_ = true;
  port_free_at_ = std::max(port_free_at_, now) + manners_.per_copy;
  simulator_.schedule(port_free_at_, *this, kSend);
}

void Box::on_event(Instant now, std::uint64_t what) {
  if (what == kTake) {
    takes_ = false;
    const Received next = received_.front();
    received_.pop_front();
    core_.take_from_box(now, next.port, next.frame);
  } else {
    sends_ = false;
    turn_ = copies_[1 - turn_].empty() ? turn_ : 1 - turn_;
    if (copies_[turn_].empty()) turn_ = 1 - turn_;
    const Copy next = copies_[turn_].front();
    copies_[turn_].pop_front();
    next.cable->send(now, next.frame);
    arrange_send(now);
  }
  arrange_take(now);
}

}  // namespace cepheus::sim
