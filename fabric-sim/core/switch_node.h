// A switch on virtual time: the switch's engine, a cable out of each port, and flow control where
// links of the fabric are lossless.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric-sim/core/box.h"
#include "fabric-sim/core/cable.h"
#include "net/flow_control.h"
#include "switch-emulator/engine/switch.h"

namespace cepheus::sim {

class SwitchNode final : public Actor, public FrameSink, public CopyWatch, public Box::Core {
 public:
  SwitchNode(Simulator& simulator, BufferPool& pool, const net::SwitchConfig& config);

  // Before connect().
  void add_flow_control(const net::BufferPlan& plan) {
    flow_ = std::make_unique<net::FlowControl<wire::Frame>>(plan);
  }
  // Before the first frame; the cable has its queue.
  void connect(wire::PortId port, Cable& cable);
  // From now on it is a program on a box. Precondition: no link of it is lossless.
  void run_on_box(const BoxManners& manners, std::uint64_t seed) {
    box_ = std::make_unique<Box>(simulator_, pool_, *this, manners, cables_.size(), seed);
  }
  const Box* box() const { return box_.get(); }
  // Null if no link of the fabric is lossless.
  const net::IngressBooks* books() const { return flow_ == nullptr ? nullptr : &flow_->books(); }
  net::IngressCounters pause_totals() const {
    return flow_ == nullptr ? net::IngressCounters() : flow_->books().totals();
  }
  // Of groups that waited for a paused port; all 0 unless its buffer has group_halt.
  net::HaltCounters halt_totals(Instant now) const {
    return flow_ == nullptr ? net::HaltCounters() : flow_->halts(now);
  }
  const fabric::Switch& engine() const { return *engine_; }
  bool jump(wire::McstId group, std::uint64_t packets) { return engine_->jump(group, packets); }
  const std::string& name() const { return engine_->config().name; }
  // Restarts with empty tables. It sees the state of its ports.
  void restart(Instant now);
  void set_port(Instant now, wire::PortId port, bool up);
  void set_checked(bool checked) { is_checked_ = checked; }
  // Its name in recordings.
  void set_number(std::uint16_t number) { number_ = number; }
  std::uint64_t frames_in() const { return frames_in_; }
  std::uint64_t frames_out() const { return frames_out_; }

  void receive(Instant now, wire::PortId port, const wire::Frame& frame) override;
  void on_event(Instant now, std::uint64_t what) override;
  void on_copy_left(Instant now, net::IngressBooks::EntryId entry) override;
  void take_from_box(Instant now, wire::PortId port, const wire::Frame& frame) override {
    take_in(now, port, frame);
  }

 private:
  enum What : std::uint64_t { kEngineTimer, kFlowTimer };

  void watch(wire::PortId port);
  void take_in(Instant now, wire::PortId port, const wire::Frame& frame);
  void carry_out(Instant now);
  void run_flow_control(Instant now);
  void look_again(Instant now);
  void send_pause(Instant now, wire::PortId port, bool pause);

  Simulator& simulator_;
  BufferPool& pool_;
  std::unique_ptr<fabric::Switch> engine_;
  std::unique_ptr<Box> box_;  // null: a switch
  fabric::SwitchOutput actions_;
  std::vector<Cable*> cables_;
  std::vector<wire::PortId> down_;
  Instant timer_at_ = wire::kNever;
  std::unique_ptr<net::FlowControl<wire::Frame>> flow_;  // null: no link is lossless
  Instant flow_timer_at_ = wire::kNever;
  std::uint64_t frames_in_ = 0;
  std::uint64_t frames_out_ = 0;
  bool is_checked_ = true;
  std::uint16_t number_ = 0;
};

}  // namespace cepheus::sim
