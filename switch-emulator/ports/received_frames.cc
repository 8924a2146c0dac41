#include "switch-emulator/ports/received_frames.h"

#include "switch-emulator/ports/checksum.h"

namespace cepheus::fabric {

std::optional<PortCounter> flaw_of(const PacketSocket::Received& received,
                                   std::uint32_t largest_frame) {
  if (received.tagged) return PortCounter::kDropTagged;
  if (received.truncated || received.bytes.size() > largest_frame) {
    return PortCounter::kDropOversize;
  }
  return std::nullopt;
}

std::optional<PortCounter> take_in(PayloadPools& pools, std::uint32_t pool,
                                   const PacketSocket::Received& received, wire::Frame& frame) {
  if (received.checksum_missing) complete_checksum(received.bytes);
  const auto parsed = wire::Frame::from_bytes(received.bytes);
  if (!parsed) return PortCounter::kDropMalformed;
  frame = *parsed;
  const auto payload = frame.payload();
  if (frame.payload_fits_inline(payload.size())) {
    frame.set_inline_payload(payload);
  } else if (payload.size() > pools.geometry().slot_bytes) {
    return PortCounter::kDropOversize;
  } else if (!pools.copy_in(pool, frame)) {
    return PortCounter::kDropNoSlot;
  }
  return std::nullopt;
}

}  // namespace cepheus::fabric
