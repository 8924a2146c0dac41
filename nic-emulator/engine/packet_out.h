// The last step of every packet: payload, ICRC, counters.
#pragma once

#include <algorithm>
#include <span>

#include "nic-emulator/engine/port.h"
#include "wire/icrc.h"

namespace cepheus::rnic {

// Result of an attempt to build a packet.
enum class Build {
  kBuilt,
  kNothing,      // there was nothing to send after all
  kNeedsBuffer,  // its payload needs the driver's buffer
  kFailed,       // memory could not be read: the QP may fail now
};

// `payload` lies behind the emitted headers if `is_inline`, else in the driver's buffer.
inline void finish_packet(Port& port, std::span<const std::uint8_t> payload, bool is_inline,
                          wire::Frame& frame) {
  frame.payload_len = static_cast<std::uint16_t>(payload.size());
  frame.external = is_inline ? nullptr : payload.data();
  frame.ref = wire::kNoBuffer;
  frame.icrc = 0;
  if (port.config.make_icrc) wire::seal_icrc(frame);
  port.counters.add(Counter::kTxPackets);
  port.counters.add(Counter::kTxBytes, frame.size());
}

inline void build_without_payload(Port& port, const wire::RoceHeaders& headers,
                                  wire::Frame& frame) {
  headers.emit(frame, 0);
  finish_packet(port, {}, true, frame);
}

// With `length` bytes, which read(span) fills in. kFailed: it returned false. kNeedsBuffer: they
// need the driver's buffer, and that is smaller than the largest MTU. Sets the pad count.
template <typename Read>
Build build_with_payload(Port& port, wire::RoceHeaders& headers, std::size_t length,
                         std::span<std::uint8_t> buffer, wire::Frame& frame, Read read) {
  headers.bth.pad_count = static_cast<std::uint8_t>(-length & 3);
  const std::size_t padded = length + headers.bth.pad_count;
  headers.emit(frame, padded);
  const bool is_inline = frame.payload_fits_inline(padded);
  if (!is_inline && buffer.size() < port.config.max_mtu) return Build::kNeedsBuffer;
  const auto bytes =
      is_inline ? std::span(frame.bytes).subspan(frame.header_len, padded) : buffer.first(padded);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(length), bytes.end(), std::uint8_t{0});
  if (!read(bytes.first(length))) return Build::kFailed;
  finish_packet(port, bytes, is_inline, frame);
  return Build::kBuilt;
}

}  // namespace cepheus::rnic
