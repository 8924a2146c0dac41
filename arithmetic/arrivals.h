// Operands of a reduction that come one by one, in any order, and are combined in the pairs of pairs.h:
// each pair as soon as both are there. So a sum has the same bits whatever comes first.
//
// Operands 2 i and 2 i + 1 share slot i: the second one is combined with the first one's values as it
// comes. So there are half as many slots as operands, and the last operand leaves at most log2 of
// them to combine. No memory of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cepheus::arithmetic {

class Arrivals {
 public:
  static constexpr std::size_t slots_for(std::size_t operands) { return (operands + 1) / 2; }

  // `steps`: a byte for each slot, of the caller's, which begin() sets.
  Arrivals(std::size_t operands, std::span<std::uint8_t> steps)
      : operands_(operands), steps_(steps.first(slots_for(operands))) {}
  void begin() { std::ranges::fill(steps_, kAbsent); }

  // An operand has come, for the first time. Runs
  //
  //     memory.store(slot)             the operand becomes the slot's values
  //     memory.add(slot)               ... is combined with them
  //     memory.combine(left, right)    slot `right` is combined with slot `left`, which has the result
  //
  // True: it was the last operand, and slot 0 has the result of all.
  template <typename Memory>
  bool add(std::size_t operand, Memory& memory) {
    std::size_t slot = operand / 2;
    const bool is_alone = (operand ^ 1) >= operands_;
    if (is_alone || steps_[slot] == kAbsent) {
      memory.store(slot);
      steps_[slot] = kHalf;
      if (!is_alone) return false;
    } else {
      memory.add(slot);
    }
    std::uint8_t step = ++steps_[slot];
    for (std::size_t width = 1; width < steps_.size(); width *= 2) {
      const std::size_t left = slot & ~width, right = slot | width;
      if (right < steps_.size()) {
        const std::uint8_t other = steps_[slot == left ? right : left];
        if (other == kAbsent || other < step) return false;
        memory.combine(left, right);
      }
      slot = left;
      steps_[slot] = ++step;
    }
    return true;
  }

 private:
  static constexpr std::uint8_t kAbsent = 0xFF, kHalf = 0;

  const std::size_t operands_;
  // Of each slot: how many steps its values have taken part in.
  const std::span<std::uint8_t> steps_;
};

}  // namespace cepheus::arithmetic
