// The result of each operation on two values, for tests. It is computed in another way than in loops.h:
// integers in 128 bits, sums and products of floating-point numbers in twice their digits, and an order
// of all by their bits.
#pragma once

#include <bit>
#include <cfloat>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "arithmetic/loops.h"
#include "arithmetic/operation.h"

namespace cepheus::arithmetic {

template <typename T>
constexpr Type type_of() {
  if (std::is_same_v<T, float>) return Type::kFloat;
  if (std::is_same_v<T, double>) return Type::kDouble;
  return static_cast<Type>(2 * std::countr_zero(sizeof(T)) + (std::is_signed_v<T> ? 1 : 0));
}

template <typename T>
Bits<T> bits_of(T value) {
  return std::bit_cast<Bits<T>>(value);
}

template <typename T>
bool is_nan(T value) {
  constexpr Bits<T> kInfinity = std::bit_cast<Bits<T>>(std::numeric_limits<T>::infinity());
  return static_cast<Bits<T>>(bits_of(value) << 1) > static_cast<Bits<T>>(kInfinity << 1);
}
template <typename T>
T the_nan() {
  return std::bit_cast<T>(static_cast<Bits<T>>(sizeof(T) == 4 ? 0xFFC0'0000 : 0xFFF8ull << 48));
}
// The place of a number that is no NaN in the order of all: -infinity ... -0, +0 ... infinity.
template <typename T>
__int128 order_of(T value) {
  if constexpr (!std::is_floating_point_v<T>) return value;
  const Bits<T> bits = bits_of(value);
  const Bits<T> magnitude = static_cast<Bits<T>>(bits << 1) >> 1;
  return bits == magnitude ? __int128{magnitude} : -__int128{magnitude} - 1;
}

template <typename T>
T number_of(Operation operation, T a, T b) {
  if (operation == Operation::kMin) return order_of(a) < order_of(b) ? a : b;
  if (operation == Operation::kMax) return order_of(a) < order_of(b) ? b : a;
  const bool is_sum = operation == Operation::kSum;
  if constexpr (std::is_floating_point_v<T>) {
    // With twice the digits, and two more, rounding twice is rounding once.
#if LDBL_MANT_DIG >= 113
    using Widest = long double;
#else
    using Widest = __float128;
#endif
    using Wide = std::conditional_t<sizeof(T) == 4, double, Widest>;
    const Wide wide = is_sum ? Wide(a) + Wide(b) : Wide(a) * Wide(b);
    return static_cast<T>(wide);
  } else {
    if (is_sum) return static_cast<T>(__int128{a} + b);
    if (operation == Operation::kProduct)
      return static_cast<T>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    T bits = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
      const unsigned ones = (bits_of(a) >> i & 1) + (bits_of(b) >> i & 1);
      const bool bit = operation == Operation::kBitOr    ? ones > 0
                       : operation == Operation::kBitAnd ? ones == 2
                                                         : ones == 1;
      if (bit) bits = static_cast<T>(bits | static_cast<T>(Bits<T>{1} << i));
    }
    const bool x = a != 0, y = b != 0;
    if (operation == Operation::kOr) return x || y ? 1 : 0;
    if (operation == Operation::kAnd) return x && y ? 1 : 0;
    if (operation == Operation::kXor) return x == y ? 0 : 1;
    return bits;
  }
}

template <typename T>
T reference(Operation operation, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (is_nan(a) || is_nan(b)) return the_nan<T>();
    const T number = number_of(operation, a, b);
    return is_nan(number) ? the_nan<T>() : number;
  } else {
    return number_of(operation, a, b);
  }
}

}  // namespace cepheus::arithmetic
