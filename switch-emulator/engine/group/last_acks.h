// When a switch repeats the last acknowledgements of turns (docs/protocol.md, "Feedback"). If such
// an acknowledgement is lost, no packet follows that would bring the next one.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "switch-emulator/engine/group/turn.h"
#include "wire/types.h"

namespace cepheus::fabric {

// A host gets it twice. A switch gets it once, after as long as it took the first time: sooner than
// that switch requests the packet, because it waits for two round trips of this path at least.
//
// Short turns follow each other within less than the first wait: the last few sources have one each.
// Bound of the PSNs' age: a NIC sends fewer than 2^23 packets during both waits, and none while the
// switch stands still.
class LastAcks {
 public:
  static constexpr std::size_t kMost = 4;
  struct Ack {
    PathNo path;
    Psn psn;  // in the numbering of its port
    TurnName turn = {};
  };

  // Off: none is repeated.
  explicit LastAcks(bool is_on = true) : is_on_(is_on) {}
  // Simulated jumps: the PSNs are another turn's.
  void reset() {
    pending_ = {};
    first_ = wire::kNever;
  }
  // The host at `ack.path` has been sent an acknowledgement of all that it has sent.
  void on_sent_to_host(wire::Instant now, const Ack& ack) { keep(now, ack, now + kFirstWait, 1); }
  // The switch there has, `took` after the last packet came. An answer of this switch itself, at
  // once, says nothing of a time that a repeat should wait, and gets none.
  void on_sent_to_switch(wire::Instant now, const Ack& ack, wire::Duration took) {
    if (took > wire::Duration{0}) keep(now, ack, now + took, 0);
  }
  // One that is due. It is repeated late if the switch stood still. The time to the next repeat
  // stays.
  std::optional<Ack> take_due(wire::Instant now) {
    std::optional<Ack> due;
    first_ = wire::kNever;
    for (Pending& one : pending_) {
      if (!due && one.due <= now) {
        due = Ack{one.path, one.psn, {one.source, one.base}};
        one.due = now + kSecondWait;
        if (one.others-- == 0) one = {};
      }
      first_ = std::min(first_, one.due);
    }
    return due;
  }
  // None is due before.
  wire::Instant next() const { return first_; }
  // Path `gone` has left, and `last` has its number.
  void on_path_removed(PathNo gone, PathNo last) {
    for (Pending& one : pending_) {
      if (one.path == gone) one = {};
      if (one.path == last) one.path = gone;
    }
  }

 private:
  // From a host's acknowledgement on, and from the first repeat on. A lost one is seldom lost again.
  static constexpr wire::Duration kFirstWait = std::chrono::milliseconds(1);
  static constexpr wire::Duration kSecondWait = std::chrono::milliseconds(9);
  struct Pending {
    PathNo path = kNoPath;
    Packed24<Psn> psn, base;
    std::uint8_t others = 0;  // repeats after the next
    Ipv4 source;
    wire::Instant sent{}, due = wire::kNever;
  };
  void keep(wire::Instant now, const Ack& ack, wire::Instant due, std::uint8_t others) {
    if (!is_on_) return;
    auto* place = std::ranges::find(pending_, ack.path, &Pending::path);
    if (place == pending_.end()) place = std::ranges::min_element(pending_, {}, &Pending::sent);
    *place = {ack.path, ack.psn, ack.turn.base, others, ack.turn.source, now, due};
    first_ = std::min(first_, due);
  }

  bool is_on_;
  wire::Instant first_ = wire::kNever;
  std::array<Pending, kMost> pending_;
};

}  // namespace cepheus::fabric
