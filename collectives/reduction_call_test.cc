#include "collectives/reduction_call.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cepheus::coll {
namespace {

// Of a double and an int, resized to 40 bytes.
TEST(Bounds, EndBehindTheGapOfTheLastElement) {
  const Bounds bounds{0, 40, 0, 12};
  EXPECT_EQ(bounds.begin(3), 0);
  EXPECT_EQ(bounds.end(1), 40);
  EXPECT_EQ(bounds.end(3), 120);
}

TEST(Bounds, BeginWithTheGapOfTheFirstElement) {
  const Bounds bounds{-8, 24, 0, 12};
  EXPECT_EQ(bounds.begin(2), -8);
  EXPECT_EQ(bounds.end(2), 40);
}

TEST(Bounds, CoverDataBeyondTheExtent) {
  const Bounds bounds{0, 4, -16, 32};
  EXPECT_EQ(bounds.begin(2), -16);
  EXPECT_EQ(bounds.end(2), 20);
}

TEST(Bounds, OfANegativeExtentBeginAtTheLastElement) {
  const Bounds bounds{0, -16, 0, 8};
  EXPECT_EQ(bounds.begin(3), -32);
  EXPECT_EQ(bounds.end(3), 8);
}

// Of MPI_BOTTOM, resized.
TEST(OperandMemory, HoldsDataAtAbsoluteAddressesAlone) {
  constexpr std::ptrdiff_t kAddress = 0x7fff'0000'1230;
  for (const Bounds& bounds :
       {Bounds{0, 16, kAddress, 12}, Bounds{0, kAddress + 12, kAddress, 12}}) {
    OperandMemory memory;
    ASSERT_TRUE(memory.reserve(1, bounds));
    // Inside the memory.
    std::memset(
        reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(memory.origin()) + kAddress), 1,
        12);
  }
}

TEST(OperandMemory, HasAnAlignedOrigin) {
  OperandMemory memory;
  ASSERT_TRUE(memory.reserve(3, {-3, 40, 1, 12}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.origin()) % alignof(std::max_align_t), 0U);
}

}  // namespace
}  // namespace cepheus::coll
