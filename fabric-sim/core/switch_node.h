// A switch on virtual time: the switch's engine and a cable out of each port; where links are
// lossless, the books of its buffer, and pause frames to the neighbours that fill it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric-sim/core/cable.h"
#include "net/buffer_plan.h"
#include "net/group_halt.h"
#include "switch-emulator/engine/switch.h"

namespace cepheus::sim {

class SwitchNode final : public Actor, public FrameSink, public CopyWatch {
 public:
  SwitchNode(Simulator& simulator, BufferPool& pool, const net::SwitchConfig& config);

  void connect(wire::PortId port, Cable& cable) { cables_[port.value()] = &cable; }
  // Before the first frame; the cables out of it have queues. Precondition: the plan has lossless
  // ports.
  void add_buffer(const net::BufferPlan& plan);
  const net::IngressBooks* books() const { return books_.get(); }  // null without a buffer
  net::IngressCounters pause_totals() const {
    return books_ == nullptr ? net::IngressCounters() : books_->totals();
  }
  // Of groups that waited for a paused port; all 0 unless its buffer says so.
  net::HaltCounters halt_totals(Instant now) const {
    return halted_ == nullptr ? net::HaltCounters() : halted_->totals(now);
  }
  const fabric::Switch& engine() const { return *engine_; }
  bool jump(wire::McstId group, std::uint64_t packets) { return engine_->jump(group, packets); }
  const std::string& name() const { return engine_->config().name; }
  // Begins again without any table. Which of its ports are down it sees.
  void restart(Instant now);
  void set_port(Instant now, wire::PortId port, bool up);
  void set_checked(bool checked) { is_checked_ = checked; }
  // What recordings call it.
  void set_number(std::uint16_t number) { number_ = number; }
  std::uint64_t frames_in() const { return frames_in_; }
  std::uint64_t frames_out() const { return frames_out_; }

  void receive(Instant now, wire::PortId port, const wire::Frame& frame) override;
  void on_event(Instant now, std::uint64_t what) override;
  void on_copy_left(Instant now, net::IngressBooks::EntryId entry) override;

 private:
  static constexpr std::uint64_t kTimer = 0;
  static constexpr std::uint64_t kEndHalts = 1;
  static constexpr std::uint64_t kRepeatPause = 2;  // and the port
  struct Halted {
    wire::PortId port;
    wire::Frame frame;
    net::IngressBooks::EntryId entry;
  };

  void take_in(Instant now, wire::PortId port, const wire::Frame& frame);
  void carry_out(Instant now);
  bool halt(Instant now, wire::PortId port, const wire::Frame& frame);
  void end_halts(Instant now);
  Instant free_at(wire::McstId group, wire::PortId ingress);
  void on_pause(Instant now, wire::PortId port, const wire::Frame& frame);
  void tell_neighbours(Instant now);
  void send_pause(Instant now, wire::PortId port, bool pause);

  Simulator& simulator_;
  BufferPool& pool_;
  std::unique_ptr<fabric::Switch> engine_;
  std::vector<wire::BufferRef> held_;  // by the engine's gates
  fabric::SwitchOutput actions_;
  std::vector<Cable*> cables_;
  std::vector<wire::PortId> down_;
  Instant timer_at_ = wire::kNever;
  std::unique_ptr<net::IngressBooks> books_;
  net::IngressBooks::EntryId entry_ = net::IngressBooks::kNone;  // of the frame being handled
  std::unique_ptr<net::GroupHalt<Halted>> halted_;               // null: groups do not wait
  std::vector<wire::PortId> copies_;                             // of free_at()
  Instant halts_end_ = wire::kNever;                             // earliest look asked for
  std::vector<Duration> repeat_;                                 // of pauses, by port
  std::vector<Instant> repeat_at_;                               // ... when next
  std::uint64_t frames_in_ = 0;
  std::uint64_t frames_out_ = 0;
  bool is_checked_ = true;
  std::uint16_t number_ = 0;
};

}  // namespace cepheus::sim
