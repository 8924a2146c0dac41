// One call into the engine: its time, its outputs, and small services of the switch.
//
// Passed by reference through every part of the engine, so that no part stores time or outputs.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "switch-emulator/engine/group/held_frames.h"
#include "switch-emulator/engine/switch.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

class GroupOrder;

// Payloads that the engine itself writes and that do not fit into a Frame. They live until the next
// call.
class Scratch {
 public:
  using Block = std::array<std::uint8_t, wire::MrpMessage::kMaxDatagram>;

  Block& take() {
    if (used_ == blocks_.size()) blocks_.emplace_back();
    return blocks_[used_++];
  }
  void reset() { used_ = 0; }

 private:
  std::deque<Block> blocks_;  // a deque, because its blocks keep their addresses when it grows
  std::size_t used_ = 0;
};

// By port; null: its link is not lossless.
using Pauses = std::vector<const net::PauseState*>;

struct Call {
  // A pause is expected to last no longer than this from now on. Its end is not known: it may be
  // repeated, ended early, or have no end yet. So engines that wait for it look again in time.
  static constexpr Duration kPauseAhead = std::chrono::milliseconds(32);

  Call(const SwitchConfig& c, Counters& counts, const Pauses& port_pauses, Scratch& payload_scratch,
       PayloadStore& store, HeldFrames& held_frames, Instant time, SwitchOutput& outputs,
       PortId port, wire::Icrc icrc)
      : config(c),
        counters(counts),
        scratch(payload_scratch),
        payloads(store),
        held(held_frames),
        now(time),
        out(outputs),
        pauses_(port_pauses),
        ingress_(port),
        icrc_(icrc) {}

  const SwitchConfig& config;
  Counters& counters;
  Scratch& scratch;
  PayloadStore& payloads;
  HeldFrames& held;
  const Instant now;
  SwitchOutput& out;
  GroupOrder* order = nullptr;  // of the group that is handled, if its leader has ordered anything
  // Of frames so far, less those that gates let through: 1 after the received frame has got its
  // fate.
  int fates = 0;

  // When the present or last pause of the port's link ends, kPauseAhead from now at most. None: the
  // link is not lossless. A time may be added to it.
  std::optional<Instant> pause_end(PortId id) const {
    const net::PauseState* const pause = pauses_[id.value()];
    if (pause == nullptr) return std::nullopt;
    return std::min(pause->until(), now + kPauseAhead);
  }

  // The port of the frame being handled: its counters and emits belong to this port. None: the
  // switch acts on its own.
  PortId ingress() const { return ingress_; }
  // Of that frame: answers get the same.
  wire::Icrc icrc() const { return icrc_; }
  const Rules& rules() const { return config.rules; }
  const PortConfig& port(PortId id) const { return config.ports[id.value()]; }

  void count(Counter c) {
    counters.add(ingress_, c);
    if (is_fate(c)) ++fates;
    if (part(c) == Part::kAgain) --fates;
  }
  // Counts a copy that is not sent.
  void lose(Counter kind, Counter reason) {
    count(kind);
    count(reason);
  }
  // Emits a copy of `frame` of that kind on port `id` and returns it, to be rewritten in place;
  // null if it is too long.
  Frame* emit(Counter kind, PortId id, const Frame& frame) {
    count(kind);
    if (frame.size() > port(id).mtu) {
      counters.add(id, Counter::kDropTooLong);
      if (kind == Counter::kDataCopies || kind == Counter::kReductionSent) too_long_ = id;
      return nullptr;
    }
    out.emits.emplace_back(id, ingress_, frame);
    counters.add(id, Counter::kTxPackets);
    counters.add(id, Counter::kTxBytes, frame.size());
    return &out.emits.back().frame;
  }

  // The port that a copy of group data did not fit through since the last take_too_long().
  std::optional<PortId> take_too_long() { return std::exchange(too_long_, {}); }

 private:
  friend class Handling;
  const Pauses& pauses_;
  PortId ingress_;
  wire::Icrc icrc_;
  std::optional<PortId> too_long_;
};

// During its lifetime the call handles a kept frame instead of the received one, or acts on its
// own.
class Handling {
 public:
  // A kept frame that was received by `port` earlier.
  Handling(Call& call, PortId port, wire::Icrc icrc) : Handling(call) {
    call.ingress_ = port;
    call.icrc_ = icrc;
  }
  // No frame: the switch's own packets get an ICRC.
  static Handling none(Call& call) { return {call, PortId(), wire::Icrc::kPresent}; }
  ~Handling() {
    call_.ingress_ = ingress_;
    call_.icrc_ = icrc_;
  }
  Handling(const Handling&) = delete;
  Handling& operator=(const Handling&) = delete;

 private:
  explicit Handling(Call& call) : call_(call), ingress_(call.ingress_), icrc_(call.icrc_) {}

  Call& call_;
  const PortId ingress_;
  const wire::Icrc icrc_;
};

}  // namespace cepheus::fabric
