// Whether hosts are sending long messages, judged by the number of their consecutive packets. Such
// hosts go on while the switch sleeps, and fill a batch. Pure.
#pragma once

#include <cstdint>

#include "wire/types.h"

namespace cepheus::live {

class BulkRun {
 public:
  void took_frame() { ++frames_; }
  // A look at all rings has ended; `worked`: it found packets.
  void looked(wire::Instant now, bool worked) {
    if (!worked) {
      frames_ = 0;
    } else if (frames_ >= kLong) {
      last_ = now;
    }
  }
  bool goes_on(wire::Instant now) const { return now - last_ < kLasts; }

 private:
  static constexpr std::uint32_t kLong = 96;
  static constexpr wire::Duration kLasts = std::chrono::milliseconds(1);

  std::uint32_t frames_ = 0;
  wire::Instant last_{};
};

}  // namespace cepheus::live
