// Each operation on two values, and the loop over two packets. The compiler makes vector instructions
// of the loops; combine.h has a function for each of them.
//
// All operations are commutative, bit by bit: a NaN result is always the same one, and minimum and
// maximum know the sign of zero. Those on integers are associative, too, and so are minimum and
// maximum. Sums and products of floating-point numbers depend on their pairs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace cepheus::arithmetic {

template <std::size_t size>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = std::uint64_t;
};
template <typename T>
using Bits = typename UnsignedOf<sizeof(T)>::Type;

template <typename T>
constexpr Bits<T> swapped(Bits<T> bits) {
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(bits);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(bits);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(bits);
  return bits;
}

// x86 makes this NaN of operands that are none, as infinity - infinity. So sums and products there
// have the bits of MPI's own functions, unless an operand is another NaN.
template <typename T>
constexpr T quiet_nan() {
  return -std::numeric_limits<T>::quiet_NaN();
}
template <typename T>
T with_one_nan(T value) {
  return __builtin_isunordered(value, value) ? quiet_nan<T>() : value;
}

// Wraps, as two's complement does. Narrow types would be promoted to int, and overflow there.
template <typename T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

struct Sum {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return with_one_nan(a + b);
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Product {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return with_one_nan(a * b);
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

// IEEE 754-2019's minimum: NaN of any NaN, and -0 < +0. Both comparisons choose the same number but for
// two cases, and OR is right in both. Of zeros with two signs it keeps the minus sign; if one is a
// NaN, each comparison chooses another operand, and OR makes a NaN of them.
template <typename T>
T minimum(T a, T b) {
  const T one = b < a ? b : a, other = a < b ? a : b;
  return with_one_nan(
      std::bit_cast<T>(std::bit_cast<Bits<T>>(one) | std::bit_cast<Bits<T>>(other)));
}

struct Min {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return minimum(a, b);
    if constexpr (std::is_integral_v<T>) return b < a ? b : a;
  }
};

struct Max {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return with_one_nan(-minimum(-a, -b));
    if constexpr (std::is_integral_v<T>) return a < b ? b : a;
  }
};

struct BitOr {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitAnd {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitXor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Or {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>((a | b) != 0);
  }
};
struct And {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};
struct Xor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

// Value `i` of a packet, which has any alignment. `is_swapped`: the packet's order of bytes is not
// this machine's.
template <typename T, bool is_swapped>
T load(const std::uint8_t* packet, std::size_t i) {
  T value;
  std::memcpy(&value, packet + i * sizeof(T), sizeof(T));
  if constexpr (is_swapped) value = std::bit_cast<T>(swapped<T>(std::bit_cast<Bits<T>>(value)));
  return value;
}
template <typename T, bool is_swapped>
void store(std::uint8_t* packet, std::size_t i, T value) {
  if constexpr (is_swapped) value = std::bit_cast<T>(swapped<T>(std::bit_cast<Bits<T>>(value)));
  std::memcpy(packet + i * sizeof(T), &value, sizeof(T));
}

// result[i] = result[i] op operand[i]. Both have `bytes` bytes, which are whole values, and do not
// overlap.
template <typename Op, typename T, bool is_swapped>
void combine(std::uint8_t* __restrict result, const std::uint8_t* __restrict operand,
             std::size_t bytes) {
  const std::size_t count = bytes / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    store<T, is_swapped>(result, i,
                         Op::of(load<T, is_swapped>(result, i), load<T, is_swapped>(operand, i)));
  }
}

}  // namespace cepheus::arithmetic
