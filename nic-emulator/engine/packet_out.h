// The last step of every packet: payload, ICRC, counters.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "nic-emulator/engine/nic.h"
#include "wire/icrc.h"

namespace cepheus::rnic {

// Result of an attempt to build a packet.
enum class Build {
  kBuilt,
  kNothing,      // there was nothing to send after all
  kNeedsBuffer,  // its payload needs the driver's buffer
  kFailed,       // memory could not be read: the QP may fail now
};

// Place of a packet's payload after its headers.
struct PayloadSpace {
  std::span<std::uint8_t> bytes;  // payload and pad; the pad is zeroed
  bool is_inline;                 // behind the headers, else in the driver's buffer
};

// Empty if `length` bytes need the driver's buffer and that is smaller than the largest MTU.
inline std::optional<PayloadSpace> payload_space(const NicConfig& config,
                                                 std::span<std::uint8_t> buffer, std::size_t length,
                                                 wire::Frame& frame) {
  const std::size_t pad = -length & 3;
  const bool is_inline = frame.payload_fits_inline(length + pad);
  if (!is_inline && buffer.size() < config.max_mtu) return std::nullopt;
  const auto bytes = is_inline ? std::span(frame.bytes).subspan(frame.header_len, length + pad)
                               : buffer.first(length + pad);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(length), bytes.end(), std::uint8_t{0});
  return PayloadSpace{bytes, is_inline};
}

// `payload` lies behind the emitted headers if `is_inline`, else in the driver's buffer.
inline void finish_packet(const NicConfig& config, Counters& counters,
                          std::span<const std::uint8_t> payload, bool is_inline,
                          wire::Frame& frame) {
  frame.payload_len = static_cast<std::uint16_t>(payload.size());
  frame.external = is_inline ? nullptr : payload.data();
  frame.ref = wire::kNoBuffer;
  frame.icrc = 0;
  if (config.make_icrc) wire::seal_icrc(frame);
  counters.add(Counter::kTxPackets);
  counters.add(Counter::kTxBytes, frame.size());
}

}  // namespace cepheus::rnic
