#include "wire/whole_io.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "wire/unique_fd.h"

namespace cepheus::wire {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(WholeIo, ReadsAllThatWasWrittenThere) {
  const UniqueFd file(memfd_create("whole_io", MFD_CLOEXEC));
  const Bytes written{1, 2, 3};
  EXPECT_EQ(write_whole(file.get(), written, 100), 0);
  Bytes found(3);
  EXPECT_EQ(read_whole(file.get(), found, 100), 3u);
  EXPECT_EQ(found, written);
}

TEST(WholeIo, ReadsTheRestOfAShortFile) {
  const UniqueFd file(memfd_create("whole_io", MFD_CLOEXEC));
  ASSERT_EQ(write_whole(file.get(), Bytes{1, 2}, 0), 0);
  Bytes found(3);
  errno = EBADF;
  EXPECT_EQ(read_whole(file.get(), found, 1), 1u);
  EXPECT_EQ(errno, 0) << "no error: the file ends there";
  EXPECT_EQ(found, (Bytes{2, 0, 0}));
}

TEST(WholeIo, ReportsErrors) {
  Bytes bytes(3);
  EXPECT_EQ(write_whole(-1, bytes, 0), EBADF);
  EXPECT_EQ(read_whole(-1, bytes, 0), 0u);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace cepheus::wire
