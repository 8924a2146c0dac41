// Time during which the process looked at the fabric. A process that computed, or was stopped,
// between two looks learns nothing from that time. So at most kGlance of it counts.
#pragma once

#include <algorithm>

#include "wire/types.h"

namespace cepheus::mcast {

class Attention {
 public:
  static constexpr wire::Duration kGlance = std::chrono::milliseconds(100);

  // The part of the time since the last look that counts.
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
