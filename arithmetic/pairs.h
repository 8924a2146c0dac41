// The pairs in which a reduction combines its operands. So a sum of floating-point numbers has the same
// bits wherever it is computed.
//
//   0   1   2   3   4   5   6      step 1: 0 and 1, 2 and 3, 4 and 5
//   |___|   |___|   |___|   |      step 2: 0 and 2, 4 and 6
//     |_______|       |_____|      step 4: 0 and 4
//         |______________|
//
// An operand without a partner takes part in a later step.
#pragma once

#include <cstddef>

namespace cepheus::arithmetic {

// Runs combine(left, right) for each pair, step by step. The left operand becomes the result of both;
// in the end operand 0 has that of all.
template <typename Combine>
void combine_in_pairs(std::size_t operands, Combine combine) {
  for (std::size_t step = 1; step < operands; step *= 2) {
    for (std::size_t i = 0; i + step < operands; i += 2 * step) combine(i, i + step);
  }
}

}  // namespace cepheus::arithmetic
