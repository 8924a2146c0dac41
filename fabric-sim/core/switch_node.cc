// A frame goes through the box, or flow control, or directly to the engine. After each call of the
// engine carry_out() sends its copies, with an entry in the buffer's books where they wait, and
// requests its timer. Flow control runs after each frame, each copy that left, and each change of a
// port.
//
// restart() makes a fresh engine: tables and counters are empty, buffers and cables keep their
// frames. Afterwards the engine learns which ports are down.
#include "fabric-sim/core/switch_node.h"

#include "fabric-sim/core/recorder.h"

namespace cepheus::sim {

SwitchNode::SwitchNode(Simulator& simulator, BufferPool& pool, const net::SwitchConfig& config)
    : simulator_(simulator),
      pool_(pool),
      engine_(std::make_unique<fabric::Switch>(config, pool)),
      cables_(config.ports.size()) {}

void SwitchNode::connect(wire::PortId port, Cable& cable) {
  cables_[port.value()] = &cable;
  watch(port);
}

void SwitchNode::watch(wire::PortId port) {
  const net::PauseState* const pause = cables_[port.value()]->pause();
  if (flow_ == nullptr || pause == nullptr) return;
  flow_->watch(port, *pause);
  if (flow_->books().buffer().is_lossless(port)) engine_->watch(port, *pause);
}

void SwitchNode::receive(Instant now, wire::PortId port, const wire::Frame& frame) {
  if (box_ != nullptr) return box_->receive(now, port, frame);
  if (flow_ == nullptr) return take_in(now, port, frame);
  using enum net::FlowControl<wire::Frame>::Arrival;
  switch (flow_->on_frame(now, *engine_, port, frame)) {
    case kForward:
      take_in(now, port, frame);
      break;
    case kHalt:
      flow_->halt(now, frame);
      simulator_.trace().note(now, name(), "halts a group from port", port.value());
      break;
    case kBufferFull:
      simulator_.trace().note(now, name(), "has no headroom for frames from port", port.value());
      pool_.release(frame.ref);
      break;
    case kPause:
      cables_[port.value()]->on_pause(now, frame);
      break;
  }
  run_flow_control(now);
}

void SwitchNode::run_flow_control(Instant now) {
  if (flow_ == nullptr) return;
  using enum net::FlowControl<wire::Frame>::Step::What;
  for (auto step = flow_->next(now, *engine_); step.what != kNothing;
       step = flow_->next(now, *engine_)) {
    if (step.what == kForward) {
      take_in(now, step.port, flow_->released());
    } else {
      send_pause(now, step.port, step.what == kPause);
    }
  }
  if (const Instant due = flow_->deadline(); due < flow_timer_at_) {
    flow_timer_at_ = due;
    simulator_.schedule(due, *this, kFlowTimer);
  }
}

void SwitchNode::send_pause(Instant now, wire::PortId port, bool pause) {
  wire::Frame frame;
  net::emit_pause(frame, engine_->config().mac, pause);
  cables_[port.value()]->send(now, frame);
}

void SwitchNode::take_in(Instant now, wire::PortId port, const wire::Frame& frame) {
  ++frames_in_;
  Recorder* const recorder = simulator_.trace().recorder();
  if (recorder != nullptr) recorder->arrives(now, number_, port, frame);
  engine_->on_packet(now, port, frame, actions_);
  carry_out(now);
  if (recorder != nullptr) recorder->handled();
  pool_.release(frame.ref);
}

void SwitchNode::restart(Instant now) {
  const net::SwitchConfig config = engine_->config();
  engine_ = std::make_unique<fabric::Switch>(config, pool_);
  for (std::size_t p = 0; p < cables_.size(); ++p) {
    watch(wire::PortId(static_cast<std::uint16_t>(p)));
  }
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
  look_again(now);
}

void SwitchNode::on_event(Instant now, std::uint64_t what) {
  if (what == kFlowTimer) {
    if (flow_timer_at_ <= now) flow_timer_at_ = wire::kNever;
    flow_->on_timer(now);
    return run_flow_control(now);
  }
  if (timer_at_ <= now) timer_at_ = wire::kNever;
  engine_->on_timer(now, actions_);
  carry_out(now);
  look_again(now);  // a trunk may have gone dark
}

// A group may have fewer ports to wait for than before.
void SwitchNode::look_again(Instant now) {
  if (flow_ == nullptr) return;
  flow_->look_again();
  run_flow_control(now);
}

// A frame that a gate had kept leaves with the frame that opened the gate: its memory is the
// gate's.
void SwitchNode::carry_out(Instant now) {
  if (is_checked_) engine_->check_consistent();
  Recorder* const recorder = simulator_.trace().recorder();
  if (recorder != nullptr) recorder->counted(now, number_, engine_->counters());
  for (const fabric::Emit& emit : actions_.emits) {
    ++frames_out_;
    if (recorder != nullptr) recorder->leaves(now, number_, emit.port, emit.frame);
    pool_.hold(emit.frame.ref);
    if (box_ != nullptr) {
      box_->transmit(now, *cables_[emit.port.value()], emit.frame);
      continue;
    }
    Cable& cable = *cables_[emit.port.value()];
    if (flow_ == nullptr) {
      cable.send(now, emit.frame);
      continue;
    }
    const auto entry = emit.space == fabric::Space::kIngress ? flow_->entry_for(emit.port)
                                                             : net::IngressBooks::kNone;
    const bool is_reserved = emit.space == fabric::Space::kOwn && flow_->is_lossless(emit.port);
    if (cable.send(now, emit.frame, entry, is_reserved)) flow_->add_copy(entry);
  }
  actions_.clear();
  if (const Instant due = engine_->deadline(); due < timer_at_) {
    timer_at_ = due;
    simulator_.schedule(due, *this, kEngineTimer);
  }
}

void SwitchNode::on_copy_left(Instant now, net::IngressBooks::EntryId entry) {
  flow_->on_copy_left(entry);
  run_flow_control(now);
}

}  // namespace cepheus::sim
