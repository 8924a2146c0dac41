#include "pmpi/entry.h"

#include <gtest/gtest.h>

namespace cepheus::pmpi {
namespace {

// Of a tool behind this library, and of MPI's own progress inside a call.
TEST(PassedOn, AreCallsInsideOnOneCommunicatorAlone) {
  constexpr Comm kFile = kCommWorld + 1, kOther = kCommWorld + 2;
  EXPECT_FALSE(is_passed_on(kCommWorld));
  const int rc = pass_on(kCommWorld, [] {
    EXPECT_TRUE(is_passed_on(kCommWorld));
    EXPECT_FALSE(is_passed_on(kFile));
    (void)pass_on(kFile, [] {
      EXPECT_TRUE(is_passed_on(kCommWorld));
      EXPECT_TRUE(is_passed_on(kFile));
      EXPECT_FALSE(is_passed_on(kOther));
      return kSuccess;
    });
    EXPECT_FALSE(is_passed_on(kFile));
    return kErrCount;
  });
  EXPECT_EQ(rc, kErrCount);
  EXPECT_FALSE(is_passed_on(kCommWorld));
}

}  // namespace
}  // namespace cepheus::pmpi
