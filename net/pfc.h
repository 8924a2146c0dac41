// Priority flow control (IEEE 802.1Qbb) on links: classes of frames, the headroom of a lossless
// link, and pause frames.
//
//   link      pause frames, which are meant for the neighbour only
//   control   registration, HELLOs, ARP and congestion notifications. A notification that waited
//             behind the queue that it reports would be late.
//   data      all other RoCE packets. A queue pair's requests keep their order, and so do its
//             answers: an acknowledgement that overtook a READ's response would mean that the
//             response is lost. So acknowledgements are data, as with real NICs.
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

// Bytes that a neighbour can still send after this port has begun to send a pause. The pause first
// waits for the frame that this port is sending. Meanwhile the neighbour fills the cable, until the
// pause arrives there. Then the neighbour ends the frame that it has begun. The frame that caused
// the pause is in the headroom, too.
wire::Bytes headroom_for(const LinkConfig& in, const LinkConfig& out, wire::Bytes largest_frame);

// The pause frame for data, or the end of it.
void emit_pause(wire::Frame& frame, wire::Mac source, bool pause);
// Time between two pause frames of a long pause on a link of this rate: half of the frame's time.
wire::Duration pause_repeat(wire::BitRate rate);

// Whether a neighbour's pause holds for data of a port, and how long data was paused in all.
class PauseState {
 public:
  // A pause frame has arrived for a link of this rate. False: it does not name data. Precondition:
  // the rate is limited.
  bool on_frame(wire::Instant now, const wire::Frame& frame, wire::BitRate rate);
  // The same without a frame. A time not after now ends the pause. kNever: its end is not known.
  void pause(wire::Instant now, wire::Instant until);

  bool is_paused(wire::Instant now) const { return now < until_; }
  // End of the pause, if no other pause frame arrives. A time not after now: data is not paused.
  // It may be kNever, so nothing may be added to it.
  wire::Instant until() const { return until_; }
  std::uint64_t pauses() const { return pauses_; }  // without repeats
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
