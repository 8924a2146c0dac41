// When a switch repeats the last acknowledgements of its hosts' turns (docs/protocol.md, "Feedback").
// If such an acknowledgement is lost, no packet follows that would bring the next one.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "switch-emulator/engine/group/path.h"
#include "wire/types.h"

namespace cepheus::fabric {

// Short turns follow each other within less than the first wait: the last few sources have one each.
// Bound of the PSNs' age: a NIC sends fewer than 2^23 packets during both waits, and none while the
// switch stands still.
class LastAcks {
 public:
  static constexpr std::size_t kMost = 4;
  struct Ack {
    PathNo path;
    Psn psn;  // in the numbering of its port
  };

  // Off: none is repeated.
  explicit LastAcks(bool is_on = true) : is_on_(is_on) {}
  // Simulated jumps: the PSNs are another turn's.
  void reset() {
    pending_ = {};
    first_ = wire::kNever;
  }
  // The host at `ack.path` has been sent an acknowledgement of all that it has sent.
  void on_sent(wire::Instant now, const Ack& ack) {
    if (!is_on_) return;
    auto* place = std::ranges::find(pending_, ack.path, &Pending::path);
    if (place == pending_.end()) place = std::ranges::min_element(pending_, {}, &Pending::at);
    *place = {ack.path, ack.psn, 0, now};
    first_ = std::min(first_, place->next());
  }
  // One that is due. It is repeated late if the switch stood still. The time to the next repeat
  // stays.
  std::optional<Ack> take_due(wire::Instant now) {
    std::optional<Ack> due;
    first_ = wire::kNever;
    for (Pending& one : pending_) {
      if (!due && one.next() <= now) {
        due = Ack{one.path, one.psn};
        one.at = now - kWaits[one.repeats++];
        if (one.repeats == kWaits.size()) one = {};
      }
      first_ = std::min(first_, one.next());
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
  // From the acknowledgement on. A lost one is seldom lost again.
  static constexpr std::array<wire::Duration, 2> kWaits{std::chrono::milliseconds(1),
                                                        std::chrono::milliseconds(10)};
  struct Pending {
    PathNo path = kNoPath;
    Packed24<Psn> psn;
    std::uint8_t repeats = 0;
    wire::Instant at{};
    wire::Instant next() const { return path == kNoPath ? wire::kNever : at + kWaits[repeats]; }
  };
  bool is_on_;
  wire::Instant first_ = wire::kNever;
  std::array<Pending, kMost> pending_;
};

}  // namespace cepheus::fabric
