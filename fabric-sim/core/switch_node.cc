#include "fabric-sim/core/switch_node.h"

#include <algorithm>

namespace cepheus::sim {

SwitchNode::SwitchNode(Simulator& simulator, BufferPool& pool, const net::SwitchConfig& config)
    : simulator_(simulator),
      pool_(pool),
      engine_(std::make_unique<fabric::Switch>(config)),
      cables_(config.ports.size()) {}

void SwitchNode::receive(Instant now, wire::PortId port, const wire::Frame& frame) {
  ++frames_in_;
  const fabric::Disposition disposition = engine_->on_packet(now, port, frame, actions_);
  carry_out(now);
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
}

void SwitchNode::on_event(Instant now, std::uint64_t) {
  if (timer_at_ <= now) timer_at_ = wire::kNever;
  engine_->on_timer(now, actions_);
  carry_out(now);
}

void SwitchNode::carry_out(Instant now) {
  if (is_checked_) engine_->check_consistent();
  for (const fabric::Emit& emit : actions_.emits) {
    ++frames_out_;
    pool_.ref(emit.frame.ref);
    cables_[emit.port.value()]->send(now, emit.frame);
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

}  // namespace cepheus::sim
