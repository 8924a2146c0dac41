#include "pmpi/tags.h"

#include <gmock/gmock.h>

namespace cepheus::pmpi {
namespace {

constexpr int kLeast = 32767;  // MPI_TAG_UB of any MPI

TEST(TagBlocks, AreWithinMpisTags) {
  TagBlocks blocks(kLeast);
  int count = 0, greatest = 0;
  for (int block = blocks.take(); block != kNoBlock; block = blocks.take(), ++count)
    greatest = std::max(greatest, block);
  EXPECT_GE(count, 1700);
  Addresses addresses;
  addresses.set({greatest});
  EXPECT_LE(addresses.tag(0, kTagsOfBlock - 1), kLeast);
}

TEST(TagBlocks, ThatWereGivenBackComeLast) {
  TagBlocks blocks(3 * kTagsOfBlock);
  EXPECT_EQ(blocks.take(), 0);
  EXPECT_EQ(blocks.take(), 1);
  blocks.give_back(0);
  EXPECT_EQ(blocks.take(), 2);
  EXPECT_EQ(blocks.take(), 0);
  EXPECT_EQ(blocks.take(), kNoBlock);
  blocks.give_back(1);
  EXPECT_EQ(blocks.take(), 1);
}

TEST(Addresses, AreThoseOfTheReceiver) {
  Addresses addresses;
  EXPECT_FALSE(addresses.is_known());
  for (const std::vector<int>& blocks : {std::vector<int>{4, 0, 9}, {5, 5, 5}, {7}}) {
    addresses.set(blocks);
    EXPECT_TRUE(addresses.is_known());
    for (int rank = 0; rank < static_cast<int>(blocks.size()); ++rank)
      EXPECT_EQ(addresses.tag(rank, 3), blocks[static_cast<std::size_t>(rank)] * kTagsOfBlock + 3);
  }
}

}  // namespace
}  // namespace cepheus::pmpi
