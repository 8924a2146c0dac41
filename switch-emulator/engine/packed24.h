// A value of 24 bits in three bytes, as a hardware table holds it.
#pragma once

#include <array>
#include <cstdint>

namespace cepheus::fabric {

// Of a type that is made from 24 bits and gives them back by value(): Psn, Qpn.
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

}  // namespace cepheus::fabric
