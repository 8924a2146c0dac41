// HELLO, which the switches at both ends of a trunk send each other (docs/protocol.md, "Trunks that
// fail"): that they are there, whether they hear the other, and which switches with hosts they have
// no way to.
//
// An MRP datagram between the switches' own addresses, behind MrpHeader one record for each switch:
//   |0|    3    |     2     |           0           |
//   |            the switch's own IPv4              |
// What does not fit into one datagram goes on in the next: MrpHeader::seq of MrpHeader::total.
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

  bool hears = false;  // something came from the other end of late
  // Larger in each list than in the one before, on a circle of 2^32 microseconds of the sender's clock.
  std::uint32_t stamp = 0;
  std::uint16_t seq = 0;
  std::uint16_t total = 1;
  std::array<Ipv4, kMaxSwitches> unreachable;  // the first `count` are valid
  std::size_t count = 0;

  std::span<const Ipv4> list() const { return {unreachable.data(), count}; }
  // Empty if it is something else, or malformed.
  static std::optional<Hello> parse(std::span<const std::uint8_t> data);
  std::size_t emit(std::span<std::uint8_t> out) const;  // bytes written, 0 if `out` is too small
};

}  // namespace cepheus::wire
