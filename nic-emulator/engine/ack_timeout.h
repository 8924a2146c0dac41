// How long a requester waits for an answer before it sends again (IBTA vol. 1, 9.7.6.1.3).
#pragma once

#include <algorithm>

#include "nic-emulator/engine/nic.h"
#include "wire/times.h"

namespace cepheus::rnic {

inline constexpr std::int64_t kLatestAckTimeout = 4;  // times the code's value

struct AckTimeout {
  Duration least, most;
};

// After `in_a_row` time-outs without an answer. `code`: QpAttr::timeout_code.
inline AckTimeout ack_timeout(const NicConfig& nic, std::uint8_t code, unsigned in_a_row) {
  if (nic.manners.ignores_timeout_code) code = nic.own_timeout_code;
  const Duration requested = std::chrono::nanoseconds(std::int64_t{4096} << code);
  const Duration first = std::max<Duration>(requested, nic.min_ack_timeout);
  const unsigned doublings = std::min(in_a_row, nic.timeout_doublings);
  const Duration least = first * (std::int64_t{1} << doublings);
  // Ranges end where doublings end.
  const Duration longest =
      std::min(first * std::max(std::int64_t{1} << nic.timeout_doublings, kLatestAckTimeout),
               std::max(first, wire::times::kSourceRepeats));
  const Duration most = nic.manners.varies_timeout ? kLatestAckTimeout * least : least;
  return {std::min(least, longest), std::min(most, longest)};
}

// The longest wait of a NIC that varies its waits; of others the first one, because each later one
// is at most as long as all before.
inline Duration latest_repeat(const NicConfig& nic, std::uint8_t code) {
  return ack_timeout(nic, code, nic.manners.varies_timeout ? nic.timeout_doublings : 0).most;
}

}  // namespace cepheus::rnic
