// HELLO, which the switches at both ends of a trunk send each other (docs/protocol.md, "Trunks that
// fail"). It shows that the sender runs, whether it receives the other's packets, and which switches
// with hosts it can't reach.
//
// An MRP datagram between the switches' own addresses, behind MrpHeader one record for each switch:
//   |0|    3    |     2     |           0           |
//   |            the switch's own IPv4              |
// Records that do not fit into one datagram go on in the next: MrpHeader::seq of MrpHeader::total.
// MrpHeader::instance is the list's stamp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/mrp.h"

namespace cepheus::wire {

struct Hello {
  static constexpr std::size_t kRecord = 8;  // bytes
  static constexpr std::size_t kMaxSwitches = (MrpMessage::kMaxSize - MrpHeader::kSize) / kRecord;

  bool receives = false;  // a packet has come from the far end recently
  // Larger in each list than in the one before, on a circle of 2^32 microseconds of the sender's
  // clock.
  std::uint32_t stamp = 0;
  std::uint16_t seq = 0;
  std::uint16_t total = 1;
  std::array<Ipv4, kMaxSwitches> unreachable;  // the first `count` are valid
  std::size_t count = 0;

  std::span<const Ipv4> list() const { return {unreachable.data(), count}; }
  // Empty for other messages and malformed ones.
  static std::optional<Hello> parse(std::span<const std::uint8_t> data);
  std::size_t emit(std::span<std::uint8_t> out) const;  // bytes written, 0 if `out` is too small
};

}  // namespace cepheus::wire
