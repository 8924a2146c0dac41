// Which frames go first where frames wait: strict priorities.
//
//   link      pause frames, which speak to the neighbour only
//   control   registration, HELLOs, ARP, and congestion notifications, which come too late behind the
//             queue that they tell of
//   data      all other RoCE packets. A queue pair's requests keep their order, and so do its
//             answers: an acknowledgement that overtook a READ's response would say that the response
//             is lost. So acknowledgements stay with data, as real NICs send them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/pause.h"
#include "wire/roce.h"

namespace cepheus::net {

enum class TrafficClass : std::uint8_t { kLink, kControl, kData };  // the first goes first
inline constexpr std::size_t kTrafficClasses = 3;

inline TrafficClass class_of(const wire::Frame& frame) {
  if (frame.icrc_state == wire::Icrc::kNone) {
    return wire::PauseFrame::is_one(frame) ? TrafficClass::kLink : TrafficClass::kControl;
  }
  const auto opcode = static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]);
  return opcode == wire::Opcode::kCnp ? TrafficClass::kControl : TrafficClass::kData;
}

}  // namespace cepheus::net
