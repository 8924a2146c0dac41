// Decisions of a switch with lossless links, beside its engine: which frames fit, which neighbours
// are paused, and which groups wait for a paused port (IEEE 802.1Qbb; Cepheus III-D). The live
// switch and the simulated one drive this object. It has no clock and no I/O.
//
//   a frame comes in   on_frame(): kForward   to the engine; a copy out of `port` that has to wait
//                                             before its link belongs to entry_for(port)
//                                  kHalt      it waits here: halt(), or the driver drops it
//                                  kBufferFull    the driver drops it
//                                  kPause     to EgressQueue::on_pause() of that port
//   a copy waits       add_copy()
//   a copy leaves      on_copy_left()
//   a port or a group
//   has changed        look_again()
//   deadline()         on_timer()
//
// After each of these except add_copy(), the driver carries out next() until it returns kNothing.
// Memory grows to the most frames that ever waited; nothing is allocated per frame.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "net/buffer_plan.h"
#include "net/group_halt.h"
#include "net/ingress_books.h"
#include "net/pfc.h"

namespace cepheus::net {

// `Held`: a frame that waits at its ingress, in the driver's form. `engine` is the switch's
// (fabric::Switch): it supplies group_of_data() and list_copies().
template <typename Held>
class FlowControl {
 public:
  using EntryId = IngressBooks::EntryId;

  explicit FlowControl(const BufferPlan& plan)
      : books_(plan.config, plan.headroom, plan.slots),
        halted_(plan.headroom.size()),
        halts_groups_(plan.config.group_halt),
        egress_(plan.headroom.size()),
        repeat_after_(plan.repeat),
        repeat_at_(plan.headroom.size(), wire::kNever) {}

  // Data out of `port` may be paused. `state` outlives this object.
  void watch(wire::PortId port, const PauseState& state) { egress_[port.value()] = &state; }

  enum class Arrival : std::uint8_t { kForward, kHalt, kBufferFull, kPause };
  template <typename Engine>
  Arrival on_frame(wire::Instant now, const Engine& engine, wire::PortId port,
                   const wire::Frame& frame) {
    const TrafficClass of = class_of(frame);
    if (of == TrafficClass::kLink) {
      looks_again_ = true;
      return Arrival::kPause;
    }
    // Registration may end a group, or take a paused port out of it.
    if (of == TrafficClass::kControl && !halted_.is_empty()) looks_again_ = true;
    if (of != TrafficClass::kData || !books_.buffer().is_lossless(port)) return Arrival::kForward;
    if (!books_.admit(port, frame.size())) return Arrival::kBufferFull;
    entry_ = books_.open(port, frame.size(), frame.external != nullptr);
    if (!halts_groups_) return Arrival::kForward;
    const std::optional<wire::McstId> group = engine.group_of_data(frame);
    if (!group || !halted_.must_wait(*group, port, now, free_at(engine, *group, port))) {
      return Arrival::kForward;
    }
    halting_ = {*group, port};
    looks_again_ = true;
    return Arrival::kHalt;
  }
  // The frame waits at its ingress. Precondition: on_frame() has just returned kHalt for it.
  void halt(wire::Instant now, const Held& frame) {
    books_.add_copy(entry_);
    halted_.push(halting_.group, halting_.port, {frame, entry_}, now);
  }

  // The entry of a copy out of `port`, while it waits, of the frame that is being forwarded.
  EntryId entry_for(wire::PortId port) const { return books_.held_by(entry_, port); }
  bool is_lossless(wire::PortId port) const { return books_.buffer().is_lossless(port); }
  void add_copy(EntryId entry) {
    if (entry != IngressBooks::kNone) books_.add_copy(entry);
  }
  void on_copy_left(EntryId entry) {
    if (entry != IngressBooks::kNone) books_.leave(entry);
  }
  void look_again() { looks_again_ = true; }
  wire::Instant deadline() const { return std::min(repeat_due_, halts_due_); }
  void on_timer(wire::Instant now) {
    if (halts_due_ > now) return;
    halts_due_ = wire::kNever;
    looks_again_ = true;
  }

  struct Step {
    enum class What : std::uint8_t {
      kNothing,
      kForward,  // released() goes to the engine, with `port` as its ingress
      kPause,    // a pause frame for data out of `port`
      kResume,   // ... that ends the pause
    };
    What what = What::kNothing;
    wire::PortId port;
  };
  // The driver calls this when it has handled the frame of the last on_frame() or next().
  template <typename Engine>
  Step next(wire::Instant now, const Engine& engine) {
    if (entry_ != IngressBooks::kNone) books_.leave(std::exchange(entry_, IngressBooks::kNone));
    if (const auto change = books_.take_change())
      return pause_step(now, change->port, change->pause);
    if (const auto port = take_repeat(now)) return pause_step(now, *port, true);
    if (!looks_again_) return {};
    const auto when = [&](wire::McstId group, wire::PortId port) {
      return free_at(engine, group, port);
    };
    if (const auto port = halted_.pop(now, released_, when)) {
      entry_ = released_.entry;
      return {Step::What::kForward, *port};
    }
    looks_again_ = false;
    halts_due_ = std::min(halts_due_, halted_.ready_at(when));
    return {};
  }
  const Held& released() const { return released_.frame; }

  const IngressBooks& books() const { return books_; }
  HaltCounters halts(wire::PortId port, wire::Instant now) const {
    return halted_.counters(port, now);
  }
  HaltCounters halts(wire::Instant now) const { return halted_.totals(now); }

 private:
  struct Halted {
    Held frame;
    EntryId entry = IngressBooks::kNone;
  };

  template <typename Engine>
  wire::Instant free_at(const Engine& engine, wire::McstId group, wire::PortId ingress) {
    engine.list_copies(group, ingress, copies_);
    wire::Instant at{};
    for (const wire::PortId port : copies_) {
      if (const PauseState* out = egress_[port.value()]) at = std::max(at, out->until());
    }
    return at;
  }
  // A pause expires by itself, so the switch repeats it while it holds. A resume keeps the repeat's
  // time: a port that is paused again before then repeats its pause early.
  Step pause_step(wire::Instant now, wire::PortId port, bool pause) {
    if (!pause) return {Step::What::kResume, port};
    wire::Instant& at = repeat_at_[port.value()];
    at = std::min(at, now + repeat_after_[port.value()]);
    repeat_due_ = std::min(repeat_due_, at);
    return {Step::What::kPause, port};
  }
  // The first port that is due to repeat its pause.
  std::optional<wire::PortId> take_repeat(wire::Instant now) {
    if (repeat_due_ > now) return std::nullopt;
    repeat_due_ = wire::kNever;
    std::optional<wire::PortId> found;
    for (std::size_t p = 0; p < repeat_at_.size(); ++p) {
      const wire::PortId port(static_cast<std::uint16_t>(p));
      if (repeat_at_[p] <= now && !found) {
        repeat_at_[p] = wire::kNever;
        if (books_.buffer().is_paused(port)) found = port;
      }
      repeat_due_ = std::min(repeat_due_, repeat_at_[p]);
    }
    return found;
  }

  IngressBooks books_;
  GroupHalt<Halted> halted_;
  const bool halts_groups_;
  std::vector<const PauseState*> egress_;  // by port; null: the port can't be paused
  EntryId entry_ = IngressBooks::kNone;    // entry of the frame in the driver's hands
  struct {
    wire::McstId group;
    wire::PortId port;
  } halting_;  // of the last frame for which on_frame() returned kHalt
  Halted released_;
  bool looks_again_ = false;                  // whether a halted group may have become free
  wire::Instant halts_due_ = wire::kNever;    // time of the next check of halted groups
  std::vector<wire::Duration> repeat_after_;  // by port, as are the two below
  std::vector<wire::Instant> repeat_at_;      // kNever: not at all
  wire::Instant repeat_due_ = wire::kNever;   // the earliest of them
  std::vector<wire::PortId> copies_;          // scratch for free_at()
};

}  // namespace cepheus::net
