// One host's turn at the switch: when its ring is looked at, and how many bytes are taken.
//
// Turns are deficit round robin (Shreedhar and Varghese 1996). A ring that has been empty for long
// waits for its doorbell; a doorbell that rings without frames is ignored. A host that has sent too
// many unanswered frames waits. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "switch-emulator/live/datapath/unanswered_account.h"

namespace cepheus::live {

class HostTurn {
 public:
  // Bytes from one host before the next has its turn, and the smallest cost of a frame, since a
  // small one takes the switch as much time as a large one.
  static constexpr std::int64_t kQuantum = 32 * (4096 + 128);
  static constexpr std::int64_t kLeastCost = 2048;
  // Empty looks at a ring before its doorbell is armed.
  static constexpr std::uint32_t kLooksUntilRest = 4096;
  // Consecutive rings without frames before the doorbell is ignored; interval of looks at the ring
  // after that.
  static constexpr std::uint32_t kMostIdleRings = 64;
  static constexpr wire::Duration kBetweenLooks = std::chrono::milliseconds(1);

  // When the ring may be looked at.
  wire::Instant resume() const { return std::max({held_until_, link_free_at_, look_at_}); }
  // The host's link accepts nothing before.
  void wait_for_link(wire::Instant until) { link_free_at_ = until; }

  // A look at the ring: begin(), take() of each frame while it has credit, end().
  void begin() { credit_ = std::min(credit_ + kQuantum, kQuantum); }
  bool has_credit() const { return credit_ > 0; }
  // True: no receiver answers such frames, and no answer has paid for this one.
  bool take(const wire::Frame& frame) {
    ++taken_;
    credit_ -= std::max(static_cast<std::int64_t>(frame.size()), kLeastCost);
    return unanswered_.take(frame);
  }
  // True: the host has sent a frame.
  bool end(wire::Instant now) {
    const bool has_sent = taken_ > 0;
    if (has_sent) {
      idle_rings_ = idle_looks_ = 0;
    } else if (is_ignored_) {
      look_at_ = now + kBetweenLooks;
    }
    taken_ = 0;
    return has_sent;
  }
  // After a look without frames. True: so were those before, and the ring may wait for its
  // doorbell.
  bool may_rest(wire::Instant now) {
    if (now < resume() || ++idle_looks_ < kLooksUntilRest) return false;
    idle_looks_ = 0;
    return true;
  }

  // The ring becomes active again.
  void wake() { idle_looks_ = 0; }
  // The doorbell has rung; an honest client rings after it has sent a frame. False: it is ignored
  // from now on.
  bool on_ring(wire::Instant now) {
    if (++idle_rings_ <= kMostIdleRings) return true;
    is_ignored_ = true;
    look_at_ = std::max(look_at_, now + kBetweenLooks);
    return false;
  }
  void on_detached() {
    is_ignored_ = false;
    idle_rings_ = 0;
  }

  UnansweredAccount& unanswered() { return unanswered_; }
  bool is_held(wire::Instant now) const { return held_until_ > now; }
  // Updates the account of unanswered frames. True: the host has to wait.
  bool update_account(wire::Instant now, std::uint64_t refused, bool others_send) {
    const auto until = unanswered_.update_account(now, refused, others_send);
    if (until) held_until_ = *until;
    return until && is_held(now);
  }

 private:
  wire::Instant held_until_{}, link_free_at_{}, look_at_{};
  std::int64_t credit_ = 0;
  std::uint32_t taken_ = 0;  // since begin()
  std::uint32_t idle_looks_ = 0;
  std::uint32_t idle_rings_ = 0;
  bool is_ignored_ = false;
  UnansweredAccount unanswered_;
};

}  // namespace cepheus::live
