// The reductions of MPI that the library arithmetic/ computes: each operation that MPI defines on a
// basic type of the library's. The host's Operator has all others.
//
// So such a result has the same bits on each path of ours and with each MPI library. Some MPI
// libraries' functions have other bits: arithmetic/README.md lists them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "arithmetic/combine.h"

namespace cepheus::coll {

// Basic types by the operations that MPI defines on them. Others have no group: complex numbers, pairs,
// characters, and Fortran's logicals, of which compilers have several forms.
enum class TypeGroup : std::uint8_t {
  kSigned,    // C's integers
  kUnsigned,  // ... without a sign
  kNumber,    // Fortran's integers, MPI_AINT, MPI_COUNT, MPI_OFFSET: no logical operations
  kFloating,  // no bitwise or logical ones
  kBool,      // C's and C++'s: logical ones alone
  kByte,      // MPI_BYTE: bitwise ones alone
};

// On values of `size` bytes. Empty: MPI has no such operation, or the library has no such type.
std::optional<arithmetic::Combiner> combiner_of(arithmetic::Operation operation, TypeGroup group,
                                                std::size_t size);

// A host's handles of operations and basic types, which it keeps. A copy that MPI_Type_dup has made is
// no basic type.
template <typename Op, typename Type>
class Operators {
 public:
  struct Operation {
    Op op;
    arithmetic::Operation operation;
  };
  struct BasicType {
    Type type;
    TypeGroup group;
  };

  constexpr Operators(std::span<const Operation> operations, std::span<const BasicType> types)
      : operations_(operations), types_(types) {}

  // `size`: bytes of one element.
  std::optional<arithmetic::Combiner> find(Op op, Type type, std::size_t size) const {
    const auto operation = std::ranges::find(operations_, op, &Operation::op);
    if (operation == operations_.end()) return std::nullopt;
    const auto basic = std::ranges::find(types_, type, &BasicType::type);
    if (basic == types_.end()) return std::nullopt;
    return combiner_of(operation->operation, basic->group, size);
  }

 private:
  std::span<const Operation> operations_;
  std::span<const BasicType> types_;
};

}  // namespace cepheus::coll
