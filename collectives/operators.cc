#include "collectives/operators.h"

#include <bit>

namespace cepheus::coll {

namespace {

bool is_bitwise(arithmetic::Operation operation) {
  return operation == arithmetic::Operation::kBitOr ||
         operation == arithmetic::Operation::kBitAnd || operation == arithmetic::Operation::kBitXor;
}

bool is_logical(arithmetic::Operation operation) {
  return operation == arithmetic::Operation::kOr || operation == arithmetic::Operation::kAnd ||
         operation == arithmetic::Operation::kXor;
}

// The tables of MPI 4.0, 6.9.2.
bool is_defined(arithmetic::Operation operation, TypeGroup group) {
  switch (group) {
    case TypeGroup::kSigned:
    case TypeGroup::kUnsigned:
      return true;
    case TypeGroup::kNumber:
      return !is_logical(operation);
    case TypeGroup::kFloating:
      return !is_bitwise(operation) && !is_logical(operation);
    case TypeGroup::kBool:
      return is_logical(operation);
    case TypeGroup::kByte:
      return is_bitwise(operation);
  }
  return false;
}

// Codes of integers ascend by size, and a signed type's is the next one.
static_assert(arithmetic::Type::kInt64 ==
              static_cast<arithmetic::Type>(2 * std::countr_zero(8u) + 1));

std::optional<arithmetic::Type> type_of(TypeGroup group, std::size_t size) {
  if (group == TypeGroup::kFloating) {
    if (size == sizeof(float)) return arithmetic::Type::kFloat;
    return size == sizeof(double) ? std::optional(arithmetic::Type::kDouble) : std::nullopt;
  }
  if (!std::has_single_bit(size) || size > sizeof(std::uint64_t)) return std::nullopt;
  const bool is_signed = group == TypeGroup::kSigned || group == TypeGroup::kNumber;
  return static_cast<arithmetic::Type>(2 * std::countr_zero(size) + (is_signed ? 1 : 0));
}

}  // namespace

std::optional<arithmetic::Combiner> combiner_of(arithmetic::Operation operation, TypeGroup group,
                                                std::size_t size) {
  // Blocks have this machine's order of bytes, and the library's values are little-endian.
  if constexpr (std::endian::native != std::endian::little) return std::nullopt;
  const std::optional<arithmetic::Type> type = type_of(group, size);
  if (!type || !is_defined(operation, group)) return std::nullopt;
  return arithmetic::Combiner::find(operation, *type);
}

}  // namespace cepheus::coll
