#include "support/reports/file_system_space.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "support/reports/call_report.h"
#include "wire/unique_fd.h"

namespace cepheus::reports {
namespace {

TEST(FileSystemSpace, LeavesAQuarterOfASmallFileSystemToOthers) {
  EXPECT_TRUE((FileSystemSpace{64 * kMiB, 17 * kMiB}).allows(kMiB));
  EXPECT_FALSE((FileSystemSpace{64 * kMiB, 17 * kMiB - 1}).allows(kMiB));
  EXPECT_FALSE((FileSystemSpace{64 * kMiB, 0}).allows(0));
}

TEST(FileSystemSpace, LeavesSixtyFourMiBOfALargeOne) {
  EXPECT_TRUE((FileSystemSpace{24'000 * kMiB, 65 * kMiB}).allows(kMiB));
  EXPECT_FALSE((FileSystemSpace{24'000 * kMiB, 64 * kMiB}).allows(kMiB));
}

TEST(FileSystemSpace, AllowsAllWhereTheSizeIsUnknown) {
  EXPECT_TRUE(FileSystemSpace{}.allows(1));
  EXPECT_EQ(FileSystemSpace{}.share_of_ended(), 2 * kMiB);
  EXPECT_EQ(FileSystemSpace{}.share_of_one(), kMostReportBytes);
}

TEST(FileSystemSpace, SharesShrinkWithTheFileSystem) {
  const FileSystemSpace container{64 * kMiB, 64 * kMiB}, tiny{kMiB, kMiB};
  EXPECT_EQ(container.share_of_ended(), 2 * kMiB);
  EXPECT_EQ(container.share_of_one(), kMiB / 16);
  EXPECT_EQ(tiny.share_of_ended(), kMiB / 32);
  EXPECT_EQ(tiny.share_of_one(), kReportStep);
}

TEST(FileSystemSpace, IsReadFromTheFileSystem) {
  const wire::UniqueFd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto room = FileSystemSpace::of(root.get());
  EXPECT_GT(room.total, 0u);
  EXPECT_LE(room.free, room.total);
  EXPECT_EQ(FileSystemSpace::of(-1).total, 0u);
}

}  // namespace
}  // namespace cepheus::reports
