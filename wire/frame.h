// One packet in two pieces: its headers by value, its payload by reference.
//
// Drivers make Frames from bytes or from ring descriptors. Engines read and rewrite the headers and
// never copy a payload: replication copies a Frame (128 bytes), not the data
// (docs/architecture.md).
//
//   bytes[0 .. header_len)   Ethernet, IPv4, UDP; with RoCE also BTH and its extension headers
//   payload()                what lies between the last header and the ICRC, pad included
//   icrc                     the four ICRC bytes as a little-endian integer (RoCE only)
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

enum class Icrc : std::uint8_t {
  kNone,      // not a RoCE packet
  kPresent,   // Frame::icrc holds the value; code that rewrites covered bytes patches it
  kDeferred,  // computed where the bytes leave shared memory, as virtio-net does with checksums
};

// The driver's name for the buffer behind Frame::external. Engines pass it on unread.
using BufferRef = std::uint32_t;
inline constexpr BufferRef kNoBuffer = 0xFFFFFFFF;

// Two cache lines.
struct alignas(64) Frame {
  // Ethernet 14 + IPv4 20 + UDP 8 + BTH 12 + DETH 8 + AtomicETH 28 = 90; the rest is room for small
  // payloads.
  static constexpr std::size_t kCapacity = 104;

  static constexpr std::uint16_t kUntagged = 0xFFFF;

  // Not zeroed, for speed: header_len tells how much is set.
  std::array<std::uint8_t, kCapacity> bytes;
  std::uint16_t header_len = 0;
  std::uint16_t payload_len = 0;
  Icrc icrc_state = Icrc::kNone;
  // Tag control information (802.1Q) that the interface has removed from a PROBE; no other frame
  // with a tag reaches an engine.
  std::uint16_t vlan_tag = kUntagged;
  std::uint32_t icrc = 0;
  BufferRef ref = kNoBuffer;
  const std::uint8_t* external = nullptr;  // null: the payload is in `bytes`, behind the headers

  std::span<std::uint8_t> header() { return {bytes.data(), header_len}; }
  std::span<const std::uint8_t> header() const { return {bytes.data(), header_len}; }
  std::span<const std::uint8_t> payload() const {
    return {external != nullptr ? external : bytes.data() + header_len, payload_len};
  }
  bool payload_fits_inline(std::size_t n) const { return header_len + n <= kCapacity; }
  // Copies `data` behind the headers. Precondition: payload_fits_inline(data.size()).
  void set_inline_payload(std::span<const std::uint8_t> data) {
    if (!data.empty()) std::memcpy(bytes.data() + header_len, data.data(), data.size());
    payload_len = static_cast<std::uint16_t>(data.size());
    external = nullptr;
    ref = kNoBuffer;
  }
  void set_external_payload(std::span<const std::uint8_t> data, BufferRef buffer) {
    external = data.data();
    payload_len = static_cast<std::uint16_t>(data.size());
    ref = buffer;
  }
  // Bytes from the Ethernet header to the ICRC, without preamble, FCS and gap.
  std::size_t size() const {
    return header_len + std::size_t{payload_len} + (icrc_state == Icrc::kNone ? 0 : 4);
  }

  // Splits contiguous bytes into header, payload and ICRC. The payload refers to `data`; RoCE
  // packets are recognised by UDP port 4791 and their opcode. Empty if any length does not add up.
  static std::optional<Frame> from_bytes(std::span<const std::uint8_t> data,
                                         BufferRef buffer = kNoBuffer);
  // Writes the contiguous packet and returns its size, or 0 if `out` is too small. Computes a
  // deferred ICRC.
  std::size_t to_bytes(std::span<std::uint8_t> out) const;
};

static_assert(sizeof(Frame) == 128);

}  // namespace cepheus::wire
