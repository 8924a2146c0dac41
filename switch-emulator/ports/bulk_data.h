// Which frames belong to bulk data: receivers and switches may wait for a batch of them.
#pragma once

#include "wire/frame.h"
#include "wire/roce.h"

namespace cepheus::fabric {

// A packet of a message that goes on, which its sender wants no acknowledgement for yet. Precondition:
// RoCE frames have a BTH. A packet that was marked on its way may not wait: its receiver has to tell.
inline bool is_bulk_data(const wire::Frame& frame) {
  if (frame.icrc_state == wire::Icrc::kNone) return false;
  constexpr std::size_t kTos = wire::kIpOffset + 1, kAckRequest = wire::kBthOffset + 8;
  constexpr std::uint8_t kMarked = 3;  // congestion experienced (RFC 3168)
  const std::uint8_t* const p = frame.bytes.data();
  const wire::OpcodeInfo& info = opcode_info(static_cast<wire::Opcode>(p[wire::kBthOffset]));
  return (info.send || info.write || info.response) && !info.last && (p[kAckRequest] & 0x80) == 0 &&
         (p[kTos] & kMarked) != kMarked;
}

}  // namespace cepheus::fabric
