// One egress of a group's tree: a member at a port of this switch, or the next switch on the way to
// some of them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "switch-emulator/engine/switch.h"

namespace cepheus::fabric {

// A value of 24 bits in three bytes, as in a hardware table. Its type is constructed from 24 bits
// and returns them by value(): Psn, Qpn.
template <typename T>
class Packed24 {
 public:
  constexpr Packed24() = default;
  constexpr Packed24(T value)
      : bytes_{static_cast<std::uint8_t>(value.value()),
               static_cast<std::uint8_t>(value.value() >> 8),
               static_cast<std::uint8_t>(value.value() >> 16)} {}
  constexpr operator T() const { return T(value()); }
  constexpr std::uint32_t value() const {
    return std::uint32_t{bytes_[0]} | std::uint32_t{bytes_[1]} << 8 |
           std::uint32_t{bytes_[2]} << 16;
  }

 private:
  std::array<std::uint8_t, 3> bytes_{};
};
static_assert(sizeof(Packed24<int>) == 3 && alignof(Packed24<int>) == 1);

// A path's number in its table.
using PathNo = std::uint16_t;
inline constexpr PathNo kNoPath = std::numeric_limits<PathNo>::max();

// Fields in a hardware table. A host's address is its port's (PortConfig::host).
struct Path {
  PortId port;
  bool is_host = false;
  Packed24<Qpn> qpn;  // member's, if it is a host
};

}  // namespace cepheus::fabric
