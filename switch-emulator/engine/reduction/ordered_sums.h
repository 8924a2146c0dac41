// Sums of floating-point numbers in a switch: a contribution comes at any time, and the sum has the
// same bits (arithmetic/pairs.h). The operands are the children, in the order of the lowest addresses
// behind them.
//
//   place        0   1     2   3     4        each pair of places has one partial sum: the second
//   partial sum    0         1       2        operand is added from its packet
//
// The first partial sum of a unit is in its contribution's slot (unit_slots.h), and has the whole sum
// in the end. The memory here has the others. So the last contribution leaves few of them to add.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "arithmetic/combine.h"
#include "switch-emulator/engine/group/path.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

// Whole words, so that two slots share none.
constexpr std::size_t slot_bytes(std::uint16_t unit) { return (unit + std::size_t{7}) / 8 * 8; }

struct SumOrder {
  std::vector<PathNo> places;  // by path; kNoPath: it does not contribute
  std::size_t children = 0;
};

class OrderedSums {
 public:
  explicit OrderedSums(const wire::MrpReduction& group) : group_(group) {}
  // 0 of groups without ordered sums.
  static std::size_t bytes_for(const wire::MrpReduction& group, std::size_t paths);

  // Takes the memory.
  void set_order(SumOrder order);
  bool is_ordered() const { return order_.children > 0; }

  struct Unit {
    std::size_t slot;
    std::uint8_t* first;  // its first partial sum
    bool is_new;          // nothing of it has come yet
  };
  // Preconditions: is_ordered(); the path has a place.
  void add(const Unit& unit, PathNo path, std::span<const std::uint8_t> data,
           const arithmetic::Combiner& combiner);

 private:
  class Partials;

  const wire::MrpReduction group_;
  SumOrder order_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::vector<std::uint8_t> steps_;  // by slot and partial sum (arithmetic/arrivals.h)
};

}  // namespace cepheus::fabric
