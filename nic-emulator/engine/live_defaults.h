// What a NIC of a live fabric has before its program or its user changes anything. The simulator's
// experiments name each setting of theirs that differs.
#pragma once

#include <algorithm>

#include "nic-emulator/engine/nic.h"

namespace cepheus::rnic {

// Two batches: the peer takes one while the other is in flight.
inline constexpr std::uint32_t kLiveWindow = 512;

// `slowest`: the rate of the fabric's slowest link.
inline NicConfig live_defaults(std::uint32_t mtu, wire::BitRate slowest) {
  // Far less than the shortest ACK time-out (NicConfig::min_ack_timeout).
  constexpr Duration kAckWithin = std::chrono::milliseconds(2);
  constexpr std::int64_t kLeastBatch = 32;
  NicConfig config;
  config.max_mtu = mtu;
  config.window_packets = kLiveWindow;
  config.cautious_window = kLiveWindow / 2;
  config.ack_every = config.window_packets / 2;
  if (!slowest.is_unlimited()) {
    // A window that waits in the queue of a slow link delays all other packets there, and a batch
    // must not take longer than an acknowledgement may be late.
    config.window_packets = config.cautious_window;
    const auto packets = kAckWithin / std::max(slowest.time_for(mtu), Duration(1));
    config.ack_every = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(packets, kLeastBatch, config.window_packets / 2));
  }
  config.timeout_doublings = 6;  // a stopped process is not a lost one
  return config;
}

}  // namespace cepheus::rnic
