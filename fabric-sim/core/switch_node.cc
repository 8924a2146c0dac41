#include "fabric-sim/core/switch_node.h"

#include <algorithm>

#include "fabric-sim/core/recorder.h"
#include "net/pfc.h"

namespace cepheus::sim {

SwitchNode::SwitchNode(Simulator& simulator, BufferPool& pool, const net::SwitchConfig& config)
    : simulator_(simulator),
      pool_(pool),
      engine_(std::make_unique<fabric::Switch>(config)),
      cables_(config.ports.size()) {}

void SwitchNode::add_buffer(const net::BufferPlan& plan) {
  books_ = std::make_unique<net::IngressBooks>(plan.config, plan.headroom);
  if (plan.config.group_halt) {
    halted_ = std::make_unique<net::GroupHalt<Halted>>(plan.headroom.size());
  }
  repeat_ = plan.repeat;
  repeat_at_.assign(plan.headroom.size(), wire::kNever);
}

void SwitchNode::receive(Instant now, wire::PortId port, const wire::Frame& frame) {
  if (books_ == nullptr) return take_in(now, port, frame);
  const net::TrafficClass of = net::class_of(frame);
  if (of == net::TrafficClass::kLink) return on_pause(now, port, frame);
  if (of != net::TrafficClass::kData || !books_->buffer().is_lossless(port)) {
    return take_in(now, port, frame);
  }
  if (!books_->admit(port, frame.size())) {
    simulator_.trace().note(now, name(), "has no headroom for what comes by port", port.value());
    return pool_.unref(frame.ref);
  }
  entry_ = books_->open(port, frame.size());
  if (!halt(now, port, frame)) take_in(now, port, frame);
  books_->close(std::exchange(entry_, net::IngressBooks::kNone));
  tell_neighbours(now);
}

// When no port is paused to which the group copies what came by `ingress`, as far as is known.
Instant SwitchNode::free_at(wire::McstId group, wire::PortId ingress) {
  engine_->list_copies(group, ingress, copies_);
  Instant at{};
  for (const wire::PortId port : copies_) {
    at = std::max(at, cables_[port.value()]->paused_until());
  }
  return at;
}

// True if the frame has to wait here, in the buffer like a copy that waits before a link.
bool SwitchNode::halt(Instant now, wire::PortId port, const wire::Frame& frame) {
  if (halted_ == nullptr) return false;
  const auto group = engine_->group_of_data(frame);
  if (!group || !halted_->must_wait(*group, port, now, free_at(*group, port))) return false;
  halted_->push(*group, port, {port, frame, entry_}, now);
  books_->add_copy(entry_);
  simulator_.trace().note(now, name(), "halts a group that came by port", port.value());
  end_halts(now);
  return true;
}

// Whoever may go does; for the others it is looked again when their pauses end.
void SwitchNode::end_halts(Instant now) {
  if (halted_ == nullptr) return;
  const auto when = [this](wire::McstId group, const Halted& item) {
    return free_at(group, item.port);
  };
  Halted next;
  while (halted_->pop(now, next, when)) {
    const auto outer = std::exchange(entry_, next.entry);
    take_in(now, next.port, next.frame);
    books_->leave(std::exchange(entry_, outer));
    tell_neighbours(now);
  }
  const Instant at = halted_->ready_at(when);
  if (at >= halts_end_) return;
  halts_end_ = at;
  simulator_.schedule(at, *this, kEndHalts);
}

void SwitchNode::take_in(Instant now, wire::PortId port, const wire::Frame& frame) {
  ++frames_in_;
  Recorder* const recorder = simulator_.trace().recorder();
  if (recorder != nullptr) recorder->arrives(now, number_, port, frame);
  const fabric::Disposition disposition = engine_->on_packet(now, port, frame, actions_);
  carry_out(now);
  if (recorder != nullptr) recorder->handled();
  if (disposition != fabric::Disposition::kHeld) {
    pool_.unref(frame.ref);
  } else if (frame.ref != wire::kNoBuffer) {
    held_.push_back(frame.ref);
  }
}

void SwitchNode::restart(Instant now) {
  for (const wire::BufferRef buffer : held_) pool_.unref(buffer);
  held_.clear();
  const net::SwitchConfig config = engine_->config();
  engine_ = std::make_unique<fabric::Switch>(config);
  frames_in_ = frames_out_ = 0;
  for (const wire::PortId port : down_) engine_->on_port_down(now, port, actions_);
  carry_out(now);
}

void SwitchNode::set_port(Instant now, wire::PortId port, bool up) {
  std::erase(down_, port);
  if (!up) down_.push_back(port);
  if (up) {
    engine_->on_port_up(now, port, actions_);
  } else {
    engine_->on_port_down(now, port, actions_);
  }
  carry_out(now);
  end_halts(now);
}

void SwitchNode::on_event(Instant now, std::uint64_t what) {
  if (what >= kRepeatPause) {
    const wire::PortId port(static_cast<std::uint16_t>(what - kRepeatPause));
    if (repeat_at_[port.value()] > now) return;
    repeat_at_[port.value()] = wire::kNever;
    if (books_->buffer().is_paused(port)) send_pause(now, port, true);
    return;
  }
  if (what == kEndHalts) {
    if (halts_end_ <= now) halts_end_ = wire::kNever;
    return end_halts(now);
  }
  if (timer_at_ <= now) timer_at_ = wire::kNever;
  engine_->on_timer(now, actions_);
  carry_out(now);
  end_halts(now);  // a trunk may have gone dark
}

// What a gate had kept goes with the frame that opened it: its own memory is the gate's.
void SwitchNode::carry_out(Instant now) {
  if (is_checked_) engine_->check_consistent();
  Recorder* const recorder = simulator_.trace().recorder();
  if (recorder != nullptr) recorder->counted(now, number_, engine_->counters());
  for (const fabric::Emit& emit : actions_.emits) {
    ++frames_out_;
    if (recorder != nullptr) recorder->leaves(now, number_, emit.port, emit.frame);
    pool_.ref(emit.frame.ref);
    const auto held =
        books_ == nullptr ? net::IngressBooks::kNone : books_->held_by(entry_, emit.port);
    const bool waits = cables_[emit.port.value()]->send(now, emit.frame, held);
    if (waits && held != net::IngressBooks::kNone) books_->add_copy(held);
  }
  for (const wire::BufferRef buffer : actions_.released) {
    pool_.unref(buffer);
    const auto at = std::find(held_.begin(), held_.end(), buffer);
    if (at != held_.end()) held_.erase(at);
  }
  actions_.clear();
  if (const Instant due = engine_->deadline(); due < timer_at_) {
    timer_at_ = due;
    simulator_.schedule(due, *this);
  }
}

void SwitchNode::on_copy_left(Instant now, net::IngressBooks::EntryId entry) {
  books_->leave(entry);
  tell_neighbours(now);
}

void SwitchNode::tell_neighbours(Instant now) {
  const auto change = books_->take_change();
  if (change) send_pause(now, change->port, change->pause);
}

void SwitchNode::send_pause(Instant now, wire::PortId port, bool pause) {
  wire::Frame frame;
  net::emit_pause(frame, engine_->config().mac, pause);
  cables_[port.value()]->send(now, frame);
  if (!pause) return;
  // What it says ends by itself: said again as long as it holds.
  Instant& repeat_at = repeat_at_[port.value()];
  const Instant at = now + repeat_[port.value()];
  if (at >= repeat_at) return;
  repeat_at = at;
  simulator_.schedule(at, *this, kRepeatPause + port.value());
}

void SwitchNode::on_pause(Instant now, wire::PortId port, const wire::Frame& frame) {
  Cable& cable = *cables_[port.value()];
  if (const auto time = net::data_pause(frame, cable.config().rate)) cable.pause(now, now + *time);
  end_halts(now);
}

}  // namespace cepheus::sim
