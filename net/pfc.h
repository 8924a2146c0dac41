// Priority flow control (IEEE 802.1Qbb) on links: classes of frames, the headroom of a lossless
// link, and pause frames.
//
//   link      pause frames, which speak to the neighbour only
//   control   registration, HELLOs, ARP, and congestion notifications, which come too late behind
//             the queue that they tell of
//   data      all other RoCE packets. A queue pair's requests keep their order, and so do its
//             answers: an acknowledgement that overtook a READ's response would say that the
//             response is lost. So acknowledgements stay with data, as real NICs send them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/link.h"
#include "wire/pause.h"
#include "wire/roce.h"

namespace cepheus::net {

// Strict priorities where frames wait: the first goes first. Only data can be paused.
enum class TrafficClass : std::uint8_t { kLink, kControl, kData };
inline constexpr std::size_t kTrafficClasses = 3;

inline TrafficClass class_of(const wire::Frame& frame) {
  if (frame.icrc_state == wire::Icrc::kNone) {
    return wire::PauseFrame::is_one(frame) ? TrafficClass::kLink : TrafficClass::kControl;
  }
  const auto opcode = static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]);
  return opcode == wire::Opcode::kCnp ? TrafficClass::kControl : TrafficClass::kData;
}

// What a neighbour can still send into this port when the port has sent its pause: all that is on
// the cable, and what goes onto it until the pause is there. The pause waits for the frame that is
// being sent the other way. The neighbour ends the frame that it has begun, and the frame that made
// the port speak is in the headroom already.
wire::Bytes headroom_for(const LinkConfig& in, const LinkConfig& out, wire::Bytes largest_frame);

// The pause frame for data, or the end of it.
void emit_pause(wire::Frame& frame, wire::Mac source, bool pause);
// Between two pause frames of a long pause of a link of this rate: half of a frame's time.
wire::Duration pause_repeat(wire::BitRate rate);

// Whether the neighbour has asked a port for silence, and how long data was silent.
class PauseState {
 public:
  // A pause frame has come for a link of this rate. False: it does not name data. Precondition: the
  // rate is limited.
  bool on_frame(wire::Instant now, const wire::Frame& frame, wire::BitRate rate);

  bool is_paused(wire::Instant now) const { return now < until_; }
  // When data goes on, if no other pause frame comes; not after now: it is not paused.
  wire::Instant until() const { return until_; }
  std::uint64_t pauses() const { return pauses_; }  // their repeats do not count
  // Spent in pauses so far.
  wire::Duration time(wire::Instant now) const {
    const wire::Instant end = now < until_ ? now : until_;
    return total_ + (end > since_ ? end - since_ : wire::Duration{0});
  }

 private:
  wire::Instant since_{}, until_{};
  wire::Duration total_{0};
  std::uint64_t pauses_ = 0;
};

}  // namespace cepheus::net
