// How many frames a host may send that nobody answers, as long as others have something to send.
//
// Such a frame costs the switch, and the NIC that it is for, as much as any other. What goes beyond
// waits in the host's own ring. By the virtual scheduling of ITU-T I.371's GCRA.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "wire/types.h"

namespace cepheus::live {

class StrayBudget {
 public:
  static constexpr std::int64_t kPerSecond = 100'000;
  static constexpr std::int64_t kBurst = 1024;

  // So many more, each copy that switches made of one counted.
  void charge(wire::Instant now, std::int64_t strays) {
    paid_until_ = std::max(paid_until_, now - kInterval * kBurst) + kInterval * strays;
  }
  // Nobody was kept waiting: what was too much is forgotten.
  void forgive(wire::Instant now) { paid_until_ = std::min(paid_until_, now); }
  // When the host may go on; if it has to wait, then for so long that looking is worth it.
  wire::Instant resume(wire::Instant now) const {
    return paid_until_ <= now ? now : paid_until_ + kInterval * kAtOnce;
  }

 private:
  static constexpr std::int64_t kAtOnce = 128;
  static constexpr wire::Duration kInterval{std::chrono::nanoseconds(std::chrono::seconds(1)) /
                                            kPerSecond};

  wire::Instant paid_until_{};
};

}  // namespace cepheus::live
