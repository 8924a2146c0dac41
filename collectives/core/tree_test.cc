#include "collectives/core/tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace cepheus::coll {
namespace {

constexpr int kSizes[] = {1, 2, 3, 32, 33, 34, 63, 64, 65, 1000};

// Levels above `rank`.
template <typename T>
int depth(int rank, int size, int root) {
  int levels = 0;
  for (; rank != root; ++levels) rank = T{{rank, size, root}}.parent();
  return levels;
}

template <typename T>
class TreeTest : public testing::Test {};
using Trees = testing::Types<Tree, FanIn>;
TYPED_TEST_SUITE(TreeTest, Trees);

TYPED_TEST(TreeTest, HasEveryRankOnceBelowItsParent) {
  for (const int size : kSizes) {
    for (const int root : {0, size / 2, size - 1}) {
      std::vector<int> found(static_cast<std::size_t>(size));
      for (int rank = 0; rank < size; ++rank) {
        TypeParam{{rank, size, root}}.children([&](int child) {
          ++found[static_cast<std::size_t>(child)];
          EXPECT_EQ((TypeParam{{child, size, root}}.parent()), rank);
        });
      }
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(found[static_cast<std::size_t>(rank)], rank == root ? 0 : 1)
            << rank << " of " << size << ", root " << root;
      }
    }
  }
}

TEST(FanIn, IsFlat) {
  EXPECT_EQ(depth<FanIn>(0, 33, 32), 1);
  EXPECT_EQ(depth<FanIn>(999, 1000, 0), 2);
  EXPECT_EQ(depth<Tree>(999, 1000, 0), 8);
}

}  // namespace
}  // namespace cepheus::coll
