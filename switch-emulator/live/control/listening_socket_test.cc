#include "switch-emulator/live/control/listening_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cepheus::live {
namespace {

using testing::HasSubstr;

class PathLockTest : public testing::Test {
 protected:
  PathLockTest() {
    std::string name = testing::TempDir() + "cepheus-lock-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~PathLockTest() override { std::filesystem::remove_all(directory_); }

  std::string socket() const { return directory_ / "switch.sock"; }
  std::string lock() const { return socket() + ".lock"; }
  // A file that another of our programs needs.
  std::string precious() const {
    const std::string path = directory_ / "precious";
    std::ofstream(path) << "keep me";
    return path;
  }
  static std::string text_of(const std::string& path) {
    std::string text;
    std::getline(std::ifstream(path), text);
    return text;
  }
  void expect_refused() const {
    const auto taken = PathLock::take(socket());
    ASSERT_FALSE(taken);
    EXPECT_THAT(taken.error().text, HasSubstr(lock()));
    EXPECT_THAT(taken.error().text, HasSubstr("remove it"));
  }

  std::filesystem::path directory_;
};

TEST_F(PathLockTest, IsHeldByOneAndNamesIt) {
  {
    const auto first = PathLock::take(socket());
    ASSERT_TRUE(first);
    EXPECT_EQ(text_of(lock()), std::to_string(getpid()));
    const auto second = PathLock::take(socket());
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().text, HasSubstr(std::to_string(getpid())));
  }
  EXPECT_FALSE(std::filesystem::exists(lock()));
  EXPECT_TRUE(PathLock::take(socket()));
}

// In a directory that others can write to, a link of theirs could have any of our files emptied.
TEST_F(PathLockTest, FollowsNoSymbolicLink) {
  const std::string file = precious();
  std::filesystem::create_symlink(file, lock());
  expect_refused();
  EXPECT_EQ(text_of(file), "keep me");
  std::filesystem::remove(lock());
  std::filesystem::create_symlink(directory_ / "not-there", lock());
  expect_refused();
  EXPECT_FALSE(std::filesystem::exists(directory_ / "not-there"));
}

TEST_F(PathLockTest, EmptiesNoFileThatHasAnotherName) {
  const std::string file = precious();
  std::filesystem::create_hard_link(file, lock());
  expect_refused();
  EXPECT_EQ(text_of(file), "keep me");
}

TEST_F(PathLockTest, WaitsForNoPipe) {
  ASSERT_EQ(mkfifo(lock().c_str(), 0600), 0);
  expect_refused();
}

}  // namespace
}  // namespace cepheus::live
