#include "support/reports/free_space.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "support/reports/call_report.h"
#include "wire/unique_fd.h"

namespace cepheus::reports {
namespace {

TEST(FreeSpace, LeavesAQuarterOfASmallFileSystemToOthers) {
  EXPECT_TRUE((FreeSpace{64 * kMiB, 17 * kMiB}).allows(kMiB));
  EXPECT_FALSE((FreeSpace{64 * kMiB, 17 * kMiB - 1}).allows(kMiB));
  EXPECT_FALSE((FreeSpace{64 * kMiB, 0}).allows(0));
}

TEST(FreeSpace, LeavesSixtyFourMiBOfALargeOne) {
  EXPECT_TRUE((FreeSpace{24'000 * kMiB, 65 * kMiB}).allows(kMiB));
  EXPECT_FALSE((FreeSpace{24'000 * kMiB, 64 * kMiB}).allows(kMiB));
}

TEST(FreeSpace, AllowsAllWhereTheSizeIsUnknown) {
  EXPECT_TRUE(FreeSpace{}.allows(1));
  EXPECT_EQ(FreeSpace{}.limit_of_ended(), 2 * kMiB);
  EXPECT_EQ(FreeSpace{}.limit_of_one(), kMostReportBytes);
}

TEST(FreeSpace, SharesShrinkWithTheFileSystem) {
  const FreeSpace container{64 * kMiB, 64 * kMiB}, tiny{kMiB, kMiB};
  EXPECT_EQ(container.limit_of_ended(), 2 * kMiB);
  EXPECT_EQ(container.limit_of_one(), kMiB / 16);
  EXPECT_EQ(tiny.limit_of_ended(), kMiB / 32);
  EXPECT_EQ(tiny.limit_of_one(), kReportStep);
}

TEST(FreeSpace, IsReadFromTheFileSystem) {
  const wire::UniqueFd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto space = FreeSpace::of(root.get());
  EXPECT_GT(space.total, 0u);
  EXPECT_LE(space.free, space.total);
  EXPECT_EQ(FreeSpace::of(-1).total, 0u);
}

}  // namespace
}  // namespace cepheus::reports
