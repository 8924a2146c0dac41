// The last hop of a lossless link: data that arrives while the client's ring is full waits here, as
// in a NIC's receive buffer, and the link is paused meanwhile.
//
//   frames on the ring   0 ......... kResumeAt ......... kPauseAt ......... kFrameRing
//                           resumes               pauses     frames on the way     here
//
// A client that reads fewer than kLeastRead frames in kReadLimit is *lost*: the link is not paused
// for it, and what its ring can't take is dropped, until the ring is half empty again. Otherwise
// one stopped program would stop all hosts that send to it. No clock.
#pragma once

#include <chrono>

#include "switch-emulator/ports/switch_port.h"
#include "wire/fifo.h"

namespace cepheus::live {

class LastHop {
 public:
  static constexpr std::uint32_t kPauseAt = fabric::kFrameRing / 4 * 3;
  static constexpr std::uint32_t kResumeAt = fabric::kFrameRing / 2;
  static constexpr std::uint32_t kLeastRead = fabric::kFrameRing / 4;
  static constexpr wire::Duration kReadLimit = std::chrono::milliseconds(500);
  // Between looks at the ring of a paused link. The client does not ring when it has read.
  static constexpr wire::Duration kBetweenLooks = std::chrono::microseconds(100);
  // Longer times without a look count no longer: the switch itself, or all programs, stood still.
  static constexpr wire::Duration kLongestLook = std::chrono::milliseconds(1);

  // Both outlive this.
  LastHop(fabric::SwitchPort& port, fabric::PayloadPools& pools) : port_(port), pools_(pools) {}

  // A frame of `sender` has arrived; the caller keeps its reference. False: dropped, and counted at
  // the port.
  bool take(const wire::Frame& frame, fabric::SenderNo sender, wire::Instant now);
  // Frees what the client has read, and passes on frames that waited.
  void look(wire::Instant now);
  // The client has left.
  void clear();

  // Whether the link has to be paused. True: look() after kBetweenLooks.
  bool is_paused() const { return is_paused_; }

 private:
  struct Waiting {
    wire::Frame frame;  // with its own reference
    fabric::SenderNo sender;
  };
  bool is_full(std::uint32_t limit) const {
    return !waiting_.is_empty() || port_.unread() >= limit;
  }
  void remove_first();
  void give_up(wire::Instant now);

  fabric::SwitchPort& port_;
  fabric::PayloadPools& pools_;
  wire::Fifo<Waiting> waiting_;
  bool is_paused_ = false;
  bool is_lost_ = false;
  std::uint32_t read_ = 0;     // by the client, when it had last read enough
  wire::Duration waited_{0};   // since then
  wire::Instant last_look_{};  // while paused
};

}  // namespace cepheus::live
