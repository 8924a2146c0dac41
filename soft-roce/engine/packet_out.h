// The last step of every packet that leaves: payload, ICRC, counters.
#pragma once

#include <cassert>

#include "libmcast/wire/icrc.h"
#include "soft-roce/engine/nic.h"

namespace cepheus::rnic {

// `payload` lies behind the emitted headers if `is_inline`, else in the driver's buffer.
inline void finish_packet(const NicConfig& config, Counters& counters,
                          std::span<const std::uint8_t> payload, bool is_inline,
                          wire::Frame& frame) {
  frame.payload_len = static_cast<std::uint16_t>(payload.size());
  frame.external = is_inline ? nullptr : payload.data();
  frame.ref = wire::kNoBuffer;
  frame.reserved = 0;
  frame.mark = 0;
  frame.icrc = 0;
  if (config.make_icrc) wire::seal_icrc(frame);
  counters.add(Counter::kTxPackets);
  counters.add(Counter::kTxBytes, frame.size());
}

}  // namespace cepheus::rnic
