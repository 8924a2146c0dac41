// Values for tests of all types, beside reference.h.
#pragma once

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "arithmetic/reference.h"

namespace cepheus::arithmetic {

using AllTypes =
    testing::Types<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                   std::int32_t, std::uint64_t, std::int64_t, float, double>;

template <typename T>
std::vector<Operation> operations_on() {
  std::vector<Operation> all{Operation::kMin, Operation::kMax, Operation::kSum,
                             Operation::kProduct};
  if (std::is_floating_point_v<T>) return all;
  for (const Operation each : {Operation::kBitOr, Operation::kBitAnd, Operation::kBitXor,
                               Operation::kOr, Operation::kAnd, Operation::kXor})
    all.push_back(each);
  return all;
}

template <typename T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all{T(0), T(1), T(2), T(3), Limits::min(), Limits::max(), Limits::lowest()};
  for (const T each : {T(1), T(100)}) {
    all.push_back(static_cast<T>(T(0) - each));
    all.push_back(static_cast<T>(Limits::max() - each));
    all.push_back(static_cast<T>(Limits::lowest() + each));
  }
  if constexpr (std::is_floating_point_v<T>) {
    constexpr Bits<T> kInfinity = std::bit_cast<Bits<T>>(Limits::infinity());
    for (const T each : {Limits::infinity(), Limits::quiet_NaN(), Limits::signaling_NaN(),
                         Limits::denorm_min(), Limits::epsilon(), T(0.1), T(1) + Limits::epsilon(),
                         Limits::min() - Limits::denorm_min(), std::bit_cast<T>(kInfinity + 77),
                         std::bit_cast<T>(bits_of(Limits::quiet_NaN()) + 77), T(0)}) {
      all.push_back(each);
      all.push_back(std::bit_cast<T>(bits_of(each) | bits_of(T(-0.0))));
    }
  }
  return all;
}

// All bits, and special values more often.
template <typename T>
rc::Gen<Bits<T>> any_bits() {
  std::vector<Bits<T>> special;
  for (const T each : special_values<T>()) special.push_back(bits_of(each));
  return rc::gen::weightedOneOf<Bits<T>>({{3, rc::gen::elementOf(special)},
                                          {4, rc::gen::noShrink(rc::gen::arbitrary<Bits<T>>())},
                                          {1, rc::gen::arbitrary<Bits<T>>()}});
}

template <typename T>
void copy_values(const std::vector<T>& values, std::uint8_t* to) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(T));
}
template <typename T>
std::vector<T> values_at(const std::uint8_t* from, std::size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), from, count * sizeof(T));
  return values;
}

template <typename T>
std::string text(Operation operation, T a, T b, T got) {
  std::ostringstream out;
  out << std::hex << name(operation) << ' ' << name(type_of<T>()) << ": 0x" << +bits_of(a)
      << " and 0x" << +bits_of(b) << " give 0x" << +bits_of(got) << ", not 0x"
      << +bits_of(reference(operation, a, b));
  return out.str();
}

}  // namespace cepheus::arithmetic
