// Combines the values of two packets by an operation of MPI (operation.h), with the same bits on every
// machine. Switches and hosts use it; hosts also use its pairs (pairs.h) with the MPI library's
// operations.
//
//   integers    two's complement: sums and products wrap
//   floating    IEEE 754, rounded to the nearest; a NaN result is one quiet NaN (loops.h)
//   min, max    IEEE 754-2019's minimum and maximum: with a NaN the result is a NaN; -0 < +0
//
// Left out:
//
//   half precision      MPI has no such types yet; partial results would lose most of their digits
//   MINLOC, MAXLOC      pairs with gaps; their packed sizes do not divide a packet. Gathers serve them
//   complex products    no operation on single values; a complex sum is one of twice as many numbers
//   long double         its format depends on the machine
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "arithmetic/floating_point.h"
#include "arithmetic/operation.h"

namespace cepheus::arithmetic {

// One operation on one type.
class Combiner {
 public:
  // By codes of a packet. Empty: a code is unknown, or MPI has no such operation on this type.
  static std::optional<Combiner> find(std::uint8_t operation, std::uint8_t type);
  static std::optional<Combiner> find(Operation operation, Type type) {
    return find(static_cast<std::uint8_t>(operation), static_cast<std::uint8_t>(type));
  }

  Operation operation() const { return operation_; }
  Type type() const { return type_; }
  // Bytes of one value.
  std::size_t size() const { return size_; }
  bool is_floating() const { return is_floating_; }
  // Results depend on how operands are paired (pairs.h), but never on their order in a pair.
  bool depends_on_pairs() const { return depends_on_pairs_; }

 private:
  friend class Batch;
  using Loop = void (*)(std::uint8_t* result, const std::uint8_t* operand, std::size_t bytes);
  Combiner(Loop loop, Operation operation, Type type);

  Loop loop_;
  Operation operation_;
  Type type_;
  std::uint8_t size_;
  bool is_floating_, depends_on_pairs_;
};

// Some calls of one operation. While it lives, its thread has the floating-point environment of
// reductions, if the operation needs it: no code of a program may run.
class Batch {
 public:
  explicit Batch(const Combiner& combiner)
      : combiner_(combiner),
        environment_(combiner.is_floating() ? std::optional<Environment>(std::in_place)
                                            : std::optional<Environment>()) {}

  // result[i] = result[i] op operand[i]. Neither needs any alignment. Preconditions: both have
  // `bytes` bytes, which are whole values, and do not overlap.
  void combine(std::uint8_t* result, const std::uint8_t* operand, std::size_t bytes) const {
    assert(bytes % combiner_.size() == 0);
    combiner_.loop_(result, operand, bytes);
  }

 private:
  const Combiner combiner_;
  std::optional<Environment> environment_;
};

}  // namespace cepheus::arithmetic
