#include "arithmetic/contribution_text.h"

#include <gtest/gtest.h>

namespace cepheus::arithmetic {
namespace {

TEST(ContributionText, NamesOperationAndType) {
  EXPECT_EQ(contribution_text(9, 7, 8), "8 bytes to a sum of int64");
  EXPECT_EQ(contribution_text(8, 8, 4), "4 bytes to a maximum of float");
  EXPECT_EQ(contribution_text(1, 6, 16), "16 bytes to a bitwise or of uint64");
}

TEST(ContributionText, IsShortForBarriersAndPlainBytes) {
  EXPECT_EQ(contribution_text(0, 0, 0), "nothing, as to a barrier");
  EXPECT_EQ(contribution_text(1, 0, 64), "64 bytes");
  EXPECT_EQ(contribution_text(1, 0, 1), "1 byte");
}

TEST(ContributionText, HasCodesThatItDoesNotKnow) {
  EXPECT_EQ(contribution_text(11, 15, 4), "4 bytes to operation 11 of type 15");
  EXPECT_EQ(contribution_text(9, 10, 0), "0 bytes to operation 9 of type 10");
  EXPECT_EQ(contribution_text(0, 0, 4), "4 bytes to operation 0 of type 0");
}

}  // namespace
}  // namespace cepheus::arithmetic
