// Operations and types of reductions, by their codes in a packet's immediate data (docs/protocol.md,
// "Reductions"). A packet has values of one type without gaps, in little-endian order.
//
// MPI defines bitwise and logical operations for integers alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cepheus::arithmetic {

enum class Operation : std::uint8_t {
  kNone = 0,  // a barrier, which has no values
  kBitOr = 1,
  kBitAnd = 2,
  kBitXor = 3,
  kOr = 4,  // logical: every value but 0 is true, and a result is 0 or 1
  kAnd = 5,
  kXor = 6,
  kMin = 7,
  kMax = 8,
  kSum = 9,
  kProduct = 10,
};
inline constexpr std::size_t kOperations = 11;  // codes

// Plain bytes, as those of a gather, are kUint8.
enum class Type : std::uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kUint64 = 6,
  kInt64 = 7,
  kFloat = 8,   // IEEE 754's binary32
  kDouble = 9,  // binary64
};
inline constexpr std::size_t kTypes = 10;

constexpr std::size_t size_of(Type type) {
  constexpr std::array<std::size_t, kTypes> kSizes{1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return kSizes[static_cast<std::size_t>(type)];
}
constexpr bool is_floating(Type type) { return type >= Type::kFloat; }

inline const char* name(Operation operation) {
  constexpr std::array<const char*, kOperations> kNames{
      "barrier",     "bitwise or", "bitwise and", "bitwise xor", "logical or", "logical and",
      "logical xor", "minimum",    "maximum",     "sum",         "product"};
  return kNames[static_cast<std::size_t>(operation)];
}
inline const char* name(Type type) {
  constexpr std::array<const char*, kTypes> kNames{"uint8", "int8",   "uint16", "int16", "uint32",
                                                   "int32", "uint64", "int64",  "float", "double"};
  return kNames[static_cast<std::size_t>(type)];
}

}  // namespace cepheus::arithmetic
