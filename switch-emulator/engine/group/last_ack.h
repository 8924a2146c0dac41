// When a switch repeats the last acknowledgement of a turn that rests (docs/protocol.md, "Feedback").
// If the acknowledgement is lost, no packet follows that would bring the next one.
#pragma once

#include <array>
#include <chrono>

#include "wire/types.h"

namespace cepheus::fabric {

class LastAck {
 public:
  // Off: it is never repeated.
  explicit LastAck(bool is_on = true) : most_(is_on ? kWaits.size() : 0), repeats_(most_) {}
  void reset() { repeats_ = most_; }
  // The source has been sent an acknowledgement of all that it has sent.
  void on_sent(wire::Instant now) {
    at_ = now;
    repeats_ = 0;
  }
  // It is repeated late if the switch stood still. The time to the next repeat stays.
  void on_repeat(wire::Instant now) { at_ = now - kWaits[repeats_++]; }
  // When to repeat it, if the turn still rests then.
  wire::Instant next() const { return repeats_ < most_ ? at_ + kWaits[repeats_] : wire::kNever; }

 private:
  // From the acknowledgement on. A lost one is seldom lost again.
  static constexpr std::array<wire::Duration, 2> kWaits{std::chrono::milliseconds(1),
                                                        std::chrono::milliseconds(10)};
  wire::Instant at_{};
  std::uint32_t most_, repeats_;
};

}  // namespace cepheus::fabric
