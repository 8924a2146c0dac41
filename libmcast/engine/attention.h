// Time during which somebody looked. A process that computed, or was stopped, between two looks
// learns nothing about the fabric from that time, so that at most kGlance of it counts.
#pragma once

#include <algorithm>

#include "wire/types.h"

namespace cepheus::mcast {

class Attention {
 public:
  static constexpr wire::Duration kGlance = std::chrono::milliseconds(100);

  // What counts of the time since the last look.
  wire::Duration look(wire::Instant now) {
    const wire::Duration passed =
        looked_ ? std::clamp(now - last_, wire::Duration(0), kGlance) : wire::Duration(0);
    looked_ = true;
    last_ = now;
    return passed;
  }

 private:
  wire::Instant last_{};
  bool looked_ = false;
};

}  // namespace cepheus::mcast
