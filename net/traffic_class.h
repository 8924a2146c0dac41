// Which frames go first where frames wait: strict priorities.
//
//   control   registration, HELLOs, ARP, and congestion notifications, which come too late behind the
//             queue that they tell of
//   data      all other RoCE packets. A queue pair's requests keep their order, and so do its
//             answers: an acknowledgement that overtook a READ's response would say that the response
//             is lost. So acknowledgements stay with data, as real NICs send them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/roce.h"

namespace cepheus::net {

enum class TrafficClass : std::uint8_t { kControl, kData };  // the first goes first
inline constexpr std::size_t kTrafficClasses = 2;

inline TrafficClass class_of(const wire::Frame& frame) {
  const bool is_roce = frame.icrc_state != wire::Icrc::kNone;
  const bool is_cnp =
      is_roce && frame.bytes[wire::kBthOffset] == static_cast<std::uint8_t>(wire::Opcode::kCnp);
  return is_roce && !is_cnp ? TrafficClass::kData : TrafficClass::kControl;
}

}  // namespace cepheus::net
