#include "fabric-sim/checked/reductions/values.h"

#include <array>
#include <bit>
#include <cassert>

namespace cepheus::sim {
namespace {

using arithmetic::Operation;
using arithmetic::Type;

unsigned bits_of(Type type) { return 8 * static_cast<unsigned>(arithmetic::size_of(type)); }

std::uint64_t mask_of(Type type) { return ~std::uint64_t{0} >> (64 - bits_of(type)); }

std::uint64_t infinity_of(Type type) {
  return type == Type::kFloat ? 0x7F80'0000 : std::uint64_t{0x7FF0} << 48;
}

bool is_signed(Type type) {
  return type == Type::kInt8 || type == Type::kInt16 || type == Type::kInt32 ||
         type == Type::kInt64;
}

bool is_nan(Type type, std::uint64_t value) {
  return is_floating(type) && (value & mask_of(type) >> 1) > infinity_of(type);
}

// The place of a value in the order of its type, from 0 on. Floating-point numbers have their sign
// apart, so the order of negative ones is the reverse of that of their bits.
std::uint64_t order_of(Type type, std::uint64_t value) {
  const std::uint64_t sign = mask_of(type) / 2 + 1;
  if (is_floating(type)) return (value & sign) != 0 ? mask_of(type) - value : value + sign;
  return is_signed(type) ? value ^ sign : value;
}

std::uint64_t nan_of(Type type) {
  return type == Type::kFloat ? 0xFFC0'0000 : std::uint64_t{0xFFF8} << 48;
}

// By the processor, which rounds to the nearest.
std::uint64_t sum_or_product(const mcast::ReductionUnits::Kind& kind, std::uint64_t a,
                             std::uint64_t b) {
  const bool is_sum = kind.operation == Operation::kSum;
  std::uint64_t result = 0;
  if (kind.type == Type::kFloat) {
    const auto left = std::bit_cast<float>(static_cast<std::uint32_t>(a));
    const auto right = std::bit_cast<float>(static_cast<std::uint32_t>(b));
    result = std::bit_cast<std::uint32_t>(is_sum ? left + right : left * right);
  } else {
    const auto left = std::bit_cast<double>(a), right = std::bit_cast<double>(b);
    result = std::bit_cast<std::uint64_t>(is_sum ? left + right : left * right);
  }
  return is_nan(kind.type, result) ? nan_of(kind.type) : result;
}

std::uint64_t least(Type type, std::uint64_t a, std::uint64_t b, bool is_greatest) {
  if (is_nan(type, a) || is_nan(type, b)) return nan_of(type);
  return (order_of(type, a) < order_of(type, b)) != is_greatest ? a : b;
}

}  // namespace

std::uint64_t drawn_value(Type type, std::uint64_t random) {
  const std::uint64_t value = random >> (64 - bits_of(type));
  if (!is_floating(type)) return (random & 0x700) == 0 ? 0 : value;
  if ((random & 0x300) != 0) return value;
  const std::uint64_t sign = value & (mask_of(type) / 2 + 1), infinity = infinity_of(type);
  const std::array<std::uint64_t, 4> special{0, 1, infinity, infinity + 1 + value % 1000};
  return sign | special[random & 3];
}

std::uint64_t drawn_near_value(Type type, std::uint64_t random) {
  const bool is_float = type == Type::kFloat;
  const int fraction = is_float ? 23 : 52;
  const std::uint64_t one = std::uint64_t{is_float ? 127u : 1023u} + (random & 7);
  const std::uint64_t sign = random & (mask_of(type) / 2 + 1);
  const std::uint64_t digits = random >> (is_float ? 20 : 8) & ((std::uint64_t{1} << fraction) - 1);
  return sign | one << fraction | digits;
}

bool depends_on_pairs(const mcast::ReductionUnits::Kind& kind) {
  return is_floating(kind.type) &&
         (kind.operation == Operation::kSum || kind.operation == Operation::kProduct);
}

std::uint64_t reduced_value(const mcast::ReductionUnits::Kind& kind, std::uint64_t a,
                            std::uint64_t b) {
  if (depends_on_pairs(kind)) return sum_or_product(kind, a, b);
  switch (kind.operation) {
    case Operation::kBitOr:
      return a | b;
    case Operation::kBitAnd:
      return a & b;
    case Operation::kBitXor:
      return a ^ b;
    case Operation::kOr:
      return a != 0 || b != 0 ? 1 : 0;
    case Operation::kAnd:
      return a != 0 && b != 0 ? 1 : 0;
    case Operation::kXor:
      return (a != 0) != (b != 0) ? 1 : 0;
    case Operation::kMin:
      return least(kind.type, a, b, false);
    case Operation::kMax:
      return least(kind.type, a, b, true);
    case Operation::kSum:
      return (a + b) & mask_of(kind.type);
    case Operation::kProduct:
      return a * b & mask_of(kind.type);
    case Operation::kNone:
      break;
  }
  assert(false);
  return 0;
}

bool may_result(const mcast::ReductionUnits::Kind& kind, std::uint64_t value,
                std::uint64_t result) {
  if (depends_on_pairs(kind)) return true;
  switch (kind.operation) {
    case Operation::kBitXor:
    case Operation::kSum:
      return true;
    case Operation::kXor:
      return result <= 1;
    case Operation::kProduct:  // a product has all factors 2 of its operands
      return value == 0 ? result == 0 : result % (value & (~value + 1)) == 0;
    default:  // of a value and the result, these make the result again
      return reduced_value(kind, value, result) == result;
  }
}

}  // namespace cepheus::sim
