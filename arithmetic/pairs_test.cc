#include "arithmetic/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cepheus::arithmetic {
namespace {

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(std::to_string(i));
  return all;
}

auto combine_texts(std::vector<std::string>& operands) {
  return [&operands](std::size_t left, std::size_t right) {
    operands[left] = '(' + operands[left] + ' ' + operands[right] + ')';
  };
}

std::string pairs_of(std::size_t count) {
  auto operands = names(count);
  combine_in_pairs(count, combine_texts(operands));
  return count == 0 ? "" : operands[0];
}

TEST(Pairs, AreOfNeighboursThenOfTheirResults) {
  EXPECT_EQ(pairs_of(0), "");
  EXPECT_EQ(pairs_of(1), "0");
  EXPECT_EQ(pairs_of(2), "(0 1)");
  EXPECT_EQ(pairs_of(3), "((0 1) 2)");
  EXPECT_EQ(pairs_of(4), "((0 1) (2 3))");
  EXPECT_EQ(pairs_of(7), "(((0 1) (2 3)) ((4 5) 6))");
}

// A partial sum of a power of two of neighbours is one operand of the same pairs: so switches may add
// up their own members first.
TEST(Pairs, AreTheSameIfEqualBlocksAreCombinedFirst) {
  for (const std::size_t block : {1u, 2u, 4u, 8u}) {
    for (std::size_t count = 1; count < 40; ++count) {
      std::vector<std::string> partial;
      for (std::size_t first = 0; first < count; first += block) {
        std::vector<std::string> inside;
        for (std::size_t i = first; i < std::min(first + block, count); ++i)
          inside.push_back(std::to_string(i));
        combine_in_pairs(inside.size(), combine_texts(inside));
        partial.push_back(inside[0]);
      }
      combine_in_pairs(partial.size(), combine_texts(partial));
      EXPECT_EQ(partial[0], pairs_of(count)) << count << " in blocks of " << block;
    }
  }
}

}  // namespace
}  // namespace cepheus::arithmetic
