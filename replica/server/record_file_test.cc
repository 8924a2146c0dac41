#include "replica/server/record_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "replica/server/volume_file.h"

namespace {

off_t bad_place = -1;  // the disk can't read from here; -1: it can read all

}  // namespace

// Replaces the C library's.
extern "C" ssize_t pread(int fd, void* buffer, std::size_t size, off_t at) {
  if (at != bad_place) return syscall(SYS_pread64, fd, buffer, size, at);
  errno = EIO;
  return -1;
}

namespace cepheus::replica {
namespace {

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/cepheus-record-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

StoredReplica some_replica() {
  StoredReplica s;
  s.volume = "v";
  s.geometry.size = 100 << 20;
  s.place = 1;
  s.count = 3;
  s.boot = "boot";
  s.record = ReplicaRecord::fresh(s.geometry, 3);
  s.record.promised = {4, 5};
  s.record.config = {{4, 5}, 6, Members::of_bits(0b110)};
  s.record.loss = Loss::kProcess;
  s.record.marks.set(99);
  return s;
}

void expect_equal(const StoredReplica& a, const StoredReplica& b) {
  EXPECT_EQ(a.volume, b.volume);
  EXPECT_EQ(a.geometry.size, b.geometry.size);
  EXPECT_EQ(a.place, b.place);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.boot, b.boot);
  EXPECT_EQ(a.record.promised, b.record.promised);
  EXPECT_EQ(a.record.config, b.record.config);
  EXPECT_EQ(a.record.loss, b.record.loss);
  EXPECT_EQ(a.record.marks.words(), b.record.marks.words());
}

void spoil(const std::string& path, std::size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
}

TEST(RecordFile, IsReadByOneAtATime) {
  const Directory directory;
  const std::string path = directory.file("r");
  StoredReplica last = some_replica();
  {
    auto first = RecordFile::create(path, some_replica());
    ASSERT_TRUE(first);
    const auto second = RecordFile::open(path);
    ASSERT_FALSE(second) << "it would miss later saves of the first one";
    EXPECT_EQ(second.error().code, wire::ErrorCode::kRefused);
    last.record.promised = {9, 9};
    ASSERT_EQ(first->save(last), 0);
  }
  const auto next = RecordFile::open(path);
  ASSERT_TRUE(next);
  expect_equal(next->stored(), last);
}

TEST(RecordFile, HoldsTheLastSave) {
  const Directory directory;
  StoredReplica stored = some_replica();
  const auto made = RecordFile::create(directory.file("r"), stored).map([](const auto&) {});
  ASSERT_TRUE(made) << made.error().text;
  for (std::uint32_t chunk = 0; chunk < 5; ++chunk) {
    auto opened = RecordFile::open(directory.file("r"));
    ASSERT_TRUE(opened) << opened.error().text;
    expect_equal(opened->stored(), stored);
    stored.record.marks.set(chunk);
    ASSERT_EQ(opened->save(stored), 0);
  }
}

// A power failure in the middle of a save leaves the content before it.
TEST(RecordFile, HoldsTheLastButOneIfTheLastIsDamaged) {
  const Directory directory;
  const std::string path = directory.file("r");
  const StoredReplica first = some_replica();
  StoredReplica second = first;
  second.record.promised.number = 9;
  {
    auto made = RecordFile::create(path, first);
    ASSERT_TRUE(made);
    ASSERT_EQ(made->save(second), 0);
  }
  // Sequences 1 and 2 are in the slots 1 and 0.
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{13}, encode_record(second, 2).size() - 1}) {
    spoil(path, at);
    const auto opened = RecordFile::open(path);
    ASSERT_TRUE(opened) << at;
    expect_equal(opened->stored(), first);
    spoil(path, at);
  }
  spoil(path, 20);
  spoil(path, std::filesystem::file_size(path) / 2 + 20);
  const auto opened = RecordFile::open(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, wire::ErrorCode::kInvalid);
}

// The older state may lack a promise, or marks of flushed data, and the next save would replace the
// newer one.
TEST(RecordFile, IsNotReadInPartFromADiskThatFails) {
  const Directory directory;
  const std::string path = directory.file("r");
  StoredReplica last = some_replica();
  {
    auto made = RecordFile::create(path, last);
    ASSERT_TRUE(made);
    last.record.promised.number = 9;
    ASSERT_EQ(made->save(last), 0);
  }
  bad_place = 0;  // the slot of the last save
  const auto failed = RecordFile::open(path).map([](const auto&) {});
  bad_place = -1;
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().text.find("Input/output error"), std::string::npos)
      << failed.error().text;
  const auto opened = RecordFile::open(path);
  ASSERT_TRUE(opened);
  expect_equal(opened->stored(), last);
}

TEST(RecordFile, IsNotMadeTwice) {
  const Directory directory;
  ASSERT_TRUE(RecordFile::create(directory.file("r"), some_replica()));
  EXPECT_FALSE(RecordFile::create(directory.file("r"), some_replica()));
}

TEST(RecordFile, AnyPieceOfOneIsRefused) {
  const auto whole = encode_record(some_replica(), 1);
  ASSERT_TRUE(decode_record(whole));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(decode_record(std::span(whole).first(n))) << n;
  }
}

// Nothing is in the way of the next attempt.
TEST(RecordFile, LeavesNoFileIfItCannotBeMade) {
  const Directory directory;
  StoredReplica unnamed = some_replica();
  unnamed.volume = std::string(256, 'v');
  EXPECT_FALSE(RecordFile::create(directory.file("r"), unnamed));
  EXPECT_FALSE(std::filesystem::exists(directory.file("r")));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  EXPECT_FALSE(RecordFile::create(directory.file("r"), some_replica()));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(std::filesystem::exists(directory.file("r")));
  EXPECT_TRUE(RecordFile::create(directory.file("r"), some_replica()));
}

TEST(VolumeFile, IsServedByOneAtATime) {
  const Directory directory;
  const std::string path = directory.file("d");
  ASSERT_TRUE(VolumeFile::create(path, 1 << 20));
  {
    const auto file = VolumeFile::open(path, 1 << 20);
    ASSERT_TRUE(file) << file.error().text;
    const auto second = VolumeFile::open(path, 1 << 20);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, wire::ErrorCode::kRefused);
  }
  EXPECT_TRUE(VolumeFile::open(path, 1 << 20));
}

TEST(VolumeFile, HoldsFlushedData) {
  const Directory directory;
  const std::string path = directory.file("d");
  ASSERT_TRUE(VolumeFile::create(path, 1 << 20));
  {
    const auto file = VolumeFile::open(path, 1 << 20);
    ASSERT_TRUE(file);
    file->data()[12345] = 7;
    EXPECT_EQ(file->flush({}, 1), 0);
  }
  std::ifstream back(path, std::ios::binary);
  back.seekg(12345);
  EXPECT_EQ(back.get(), 7);
}

TEST(VolumeFile, OfAnotherSizeThanItsRecordIsRefused) {
  const Directory directory;
  ASSERT_TRUE(VolumeFile::create(directory.file("d"), 1 << 20));
  EXPECT_FALSE(VolumeFile::open(directory.file("d"), 2 << 20));
}

}  // namespace
}  // namespace cepheus::replica
