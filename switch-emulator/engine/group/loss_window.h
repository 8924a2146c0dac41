// How many packets a source should have under way while packets are lost (docs/protocol.md, "What a
// way can take").
//
// A NIC repeats all packets from a lost one on, and they wait behind those under way. So a loss costs
// as much as is under way, and more if the repeats overflow the queue. This window is at most half
// of the packets between two losses: then the repeats take half of a link at most. It is a power of
// two and follows slowly, because each change is sent to all members. Random losses come at distances
// from none to several means, so it grows only where losses have become much rarer.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace cepheus::fabric {

class LossWindow {
 public:
  static constexpr std::uint32_t kLeast = 16;

  explicit LossWindow(bool follows_losses) : follows_losses_(follows_losses) {}

  // 0: no limit.
  std::uint32_t packets() const { return window_; }

  // Both return whether the window has changed. `taken`: packets of the source so far, repeats
  // included, on a circle of 2^32.
  bool on_data(std::uint32_t taken) {
    return window_ != 0 && taken - last_ >= kGrows * window_ && follow(taken - last_);
  }
  // The source repeats a packet, and all behind it.
  bool on_loss(std::uint32_t taken) {
    if (!follows_losses_) return false;
    const std::uint32_t gap = std::min(taken - last_, kNoLoss);
    last_ = taken;
    return follow(gap_ - gap_ / kWeight + gap / kWeight);
  }

 private:
  static constexpr std::uint32_t kNoLoss = 1 << 16;  // packets without a loss that count as no loss
  static constexpr std::uint32_t kWeight = 4;
  static constexpr std::uint32_t kGrows = 32;

  bool follow(std::uint32_t gap) {
    gap_ = gap;
    const std::uint32_t most = gap / 2;
    const std::uint32_t before = window_;
    if (gap >= kNoLoss) {
      window_ = 0;
    } else if (window_ == 0 || window_ > most || kGrows * window_ <= gap) {
      window_ = std::max(std::bit_floor(most), kLeast);
    }
    return window_ != before;
  }

  bool follows_losses_;
  std::uint32_t last_ = 0;  // packets taken before the last loss
  std::uint32_t gap_ = 512;
  std::uint32_t window_ = 0;
};

}  // namespace cepheus::fabric
