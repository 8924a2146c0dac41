#include "replica/server/volume_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cepheus::replica {
namespace {

using Cache = VolumeFile::Cache;
constexpr std::uint32_t kChunk = 64 << 10;
constexpr std::uint64_t kSize =
    4 * kChunk + 2 * VolumeFile::kDirectBlock;  // the last chunk is a short one
constexpr const char* kNoDirectIo =
    "the file system of /var/tmp has no O_DIRECT: mount one with it, such as ext4 or XFS, there";

class OfFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/var/tmp/cepheus-volume-XXXXXX";  // on a disk; /tmp may be memory
    directory_ = mkdtemp(pattern);
    path_ = directory_ + "/data";
    ASSERT_TRUE(VolumeFile::create(path_, kSize));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  bool has_direct_io() const {
    const wire::UniqueFd file(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT));
    return file.is_open() || errno != EINVAL;
  }
  // The disk's content: reads through the page cache, which O_DIRECT bypasses and invalidates.
  char at(std::uint64_t offset) const {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    return static_cast<char>(file.get());
  }

  std::string directory_, path_;
};

TEST_F(OfFile, WithDirectIoHasFlushedDataOnly) {
  if (!has_direct_io()) GTEST_SKIP() << kNoDirectIo;
  auto file = VolumeFile::open(path_, kSize, Cache::kDirect);
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_FALSE(file->outlives_program());
  for (const std::uint64_t offset : {std::uint64_t{1}, 2 * std::uint64_t{kChunk} + 7, kSize - 1}) {
    file->data()[offset] = 'w';
  }
  EXPECT_EQ(at(1), 0);
  ChunkBitmap chunks(5);
  chunks.set(2);
  chunks.set(4);
  ASSERT_EQ(file->flush(chunks, kChunk), 0);
  EXPECT_EQ(at(1), 0) << "chunk 0 was not to be flushed";
  EXPECT_EQ(at(2 * kChunk + 7), 'w');
  EXPECT_EQ(at(kSize - 1), 'w');
}

TEST_F(OfFile, WithDirectIoIsReadWhole) {
  std::ofstream(path_, std::ios::binary | std::ios::in).seekp(kSize - 1).put('r');
  if (!has_direct_io()) GTEST_SKIP() << kNoDirectIo;
  auto file = VolumeFile::open(path_, kSize, Cache::kDirect);
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->data()[kSize - 1], 'r');
}

TEST_F(OfFile, WithDirectIoIsOfWholeDiskBlocks) {
  ASSERT_TRUE(VolumeFile::create(path_ + "2", kSize + 512));
  const auto file = VolumeFile::open(path_ + "2", kSize + 512, Cache::kDirect);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().text.find("multiple of 4096"), std::string::npos) << file.error().text;
}

TEST_F(OfFile, InThePageCacheIsFlushedWhereItChanged) {
  auto file = VolumeFile::open(path_, kSize);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->outlives_program());
  file->data()[kChunk] = 'p';
  EXPECT_EQ(file->flush(ChunkBitmap(5), kChunk), 0);
  EXPECT_EQ(at(kChunk), 'p');
}

}  // namespace
}  // namespace cepheus::replica
