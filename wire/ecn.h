// Explicit congestion notification (RFC 3168, 5): the last two bits of an IPv4 header's TOS. The
// ICRC does not cover them (IBTA Annex A17.3.3), so a switch that marks a packet corrects the
// header checksum only.
#pragma once

#include <cstdint>
#include <span>

#include "wire/byte_order.h"
#include "wire/ipv4_header.h"

namespace cepheus::wire {

enum class Ecn : std::uint8_t {
  kNotCapable = 0,  // the sender ignores marks
  kEct1 = 1,
  kEct0 = 2,         // NICs with congestion control send data as this
  kExperienced = 3,  // a queue on the way was long
};

inline constexpr std::uint8_t kEcnMask = 0b11;
constexpr Ecn ecn_of(std::uint8_t tos) { return static_cast<Ecn>(tos & kEcnMask); }
// The DSCP alone (RFC 2474), in its place.
constexpr std::uint8_t without_ecn(std::uint8_t tos) {
  return static_cast<std::uint8_t>(tos & ~kEcnMask);
}

// Marks an emitted header and corrects its checksum (RFC 1624, equation 3); false, and nothing is
// changed, if the sender is not capable.
inline bool mark_congestion(std::span<std::uint8_t, Ipv4Header::kSize> header) {
  std::uint8_t* p = header.data();
  if (ecn_of(p[1]) == Ecn::kNotCapable) return false;
  const std::uint16_t before = load_be16(p);
  p[1] |= kEcnMask;
  const std::uint64_t sum =
      std::uint64_t{static_cast<std::uint16_t>(~load_be16(p + ipv4::kChecksumOffset))} +
      static_cast<std::uint16_t>(~before) + load_be16(p);
  store_be16(p + ipv4::kChecksumOffset, ipv4::finish_checksum(sum));
  return true;
}

}  // namespace cepheus::wire
