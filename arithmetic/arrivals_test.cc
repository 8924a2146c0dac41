#include "arithmetic/arrivals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "arithmetic/pairs.h"

namespace cepheus::arithmetic {
namespace {

// Writes pairs as texts. Both operands of a pair are in order, as operations do not depend on it.
struct Texts {
  explicit Texts(std::size_t operands) : slots(Arrivals::slots_for(operands)) {}
  void store(std::size_t slot) { slots[slot] = operand; }
  void add(std::size_t slot) {
    const bool is_second = std::stoul(slots[slot]) < std::stoul(operand);
    slots[slot] = is_second ? pair(slots[slot], operand) : pair(operand, slots[slot]);
  }
  void combine(std::size_t left, std::size_t right) {
    slots[left] = pair(slots[left], slots[right]);
    ++combined;
  }
  static std::string pair(const std::string& left, const std::string& right) {
    return '(' + left + ' ' + right + ')';
  }

  std::vector<std::string> slots;
  std::string operand;
  int combined = 0;
};

RC_GTEST_PROP(Arrivals, MakeTheSamePairsInAnyOrder, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 70);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < count; ++i) expected.push_back(std::to_string(i));
  combine_in_pairs(count, [&](std::size_t left, std::size_t right) {
    expected[left] = Texts::pair(expected[left], expected[right]);
  });
  std::vector<std::uint8_t> steps(Arrivals::slots_for(count), 77);
  Arrivals arrivals(count, steps);
  arrivals.begin();
  Texts texts(count);
  for (std::size_t i = 0; i < count; ++i) {
    texts.operand = std::to_string(order[i]);
    RC_ASSERT(arrivals.add(order[i], texts) == (i + 1 == count));
  }
  RC_ASSERT(texts.slots[0] == expected[0]);
}

TEST(Arrivals, LeaveFewPairsForTheLastOperand) {
  std::vector<std::uint8_t> steps(32);
  Arrivals arrivals(64, steps);
  for (std::size_t last = 0; last < 64; ++last) {
    arrivals.begin();
    Texts texts(64);
    for (std::size_t i = 0; i < 64; ++i) {
      texts.operand = std::to_string(i);
      if (i != last) {
        EXPECT_FALSE(arrivals.add(i, texts));
      }
    }
    EXPECT_EQ(texts.combined, 31 - 5);
    texts.operand = std::to_string(last);
    EXPECT_TRUE(arrivals.add(last, texts));
    EXPECT_EQ(texts.combined, 31);
  }
}

}  // namespace
}  // namespace cepheus::arithmetic
