#include "support/reports/recorded_calls.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/reports/call_report.h"

namespace cepheus::reports {
namespace {

class RecordedCalls : public testing::Test {
 protected:
  RecordedCalls() {
    char pattern[] = "/dev/shm/recorded-calls-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~RecordedCalls() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<CallRing> make_ring() const {
    auto ring = CallRing::create(directory_, "program", "job");
    EXPECT_TRUE(ring) << ring.error().text;
    return std::move(*ring);
  }
  CallRingReader reader() const {
    const auto rings = find_rings(directory_);
    EXPECT_EQ(rings.size(), 1u);
    return std::move(*CallRingReader::open(rings.at(0)));
  }
  static CallText text(const char* path) {
    CallText made;
    made.rank = 2;
    made.ranks = 4;
    put_text(made.communicator, "world");
    put_text(made.path, path);
    put_text(made.reason, "multicast");
    return made;
  }

  std::string directory_;
};

// Containers with one /dev/shm have process numbers of their own.
TEST_F(RecordedCalls, LeaveRingsOfProcessesWithTheSameNumberAlone) {
  std::vector<std::string> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(directory_ + "/" + std::to_string(getpid()) + "-" + std::to_string(i) +
                     ".ring");
    std::ofstream(others.back()) << "another container's";
  }
  const auto ring = make_ring();
  for (const std::string& other : others) EXPECT_TRUE(std::filesystem::exists(other)) << other;
}

TEST_F(RecordedCalls, AreReadOnceWithAllTexts) {
  const auto ring = make_ring();
  CallRingReader seen = reader();
  EXPECT_EQ(seen.pid(), static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(seen.program(), "program");
  ring->add(text("eager lane"), 100, 250, 8, 3);
  ring->add(text("bulk lane"), 300, 900, 1 << 20, 0);
  const auto calls = seen.take();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].begin_ns, 100);
  EXPECT_EQ(calls[0].end_ns, 250);
  EXPECT_EQ(calls[0].bytes, 8u);
  EXPECT_EQ(calls[0].root, 3u);
  EXPECT_EQ(calls[0].text, text("eager lane"));
  EXPECT_EQ(calls[1].text, text("bulk lane"));
  EXPECT_TRUE(seen.take().empty());
  EXPECT_EQ(seen.lost(), 0u);
}

TEST_F(RecordedCalls, CountCallsThatWereOverwrittenBeforeTheyWereRead) {
  const auto ring = make_ring();
  CallRingReader seen = reader();
  for (std::size_t i = 0; i < kMostCalls + 10; ++i) {
    ring->add(text("eager lane"), static_cast<std::int64_t>(i), 0, 0, 0);
  }
  const auto calls = seen.take();
  ASSERT_EQ(calls.size(), kMostCalls);
  EXPECT_EQ(calls[0].begin_ns, 10);
  EXPECT_EQ(seen.lost(), 10u);
}

TEST_F(RecordedCalls, HaveNoTextWhereThereAreTooMany) {
  const auto ring = make_ring();
  CallRingReader seen = reader();
  for (std::size_t i = 0; i <= kMostTexts; ++i) {
    ring->add(text(("path " + std::to_string(i)).c_str()), 1, 2, 3, 0);
  }
  const auto calls = seen.take();
  ASSERT_EQ(calls.size(), kMostTexts + 1);
  EXPECT_EQ(get_text(calls[kMostTexts - 1].text.path), "path 63");
  EXPECT_EQ(get_text(calls[kMostTexts].text.path), "");
}

TEST_F(RecordedCalls, AreClearedOnceTheirProcessHasEnded) {
  auto ring = make_ring();
  clear_rings(directory_);
  EXPECT_EQ(find_rings(directory_).size(), 1u) << "its process lives";
  EXPECT_FALSE(reader().is_abandoned());
  ring.reset();
  EXPECT_TRUE(reader().is_abandoned());
  clear_rings(directory_);
  EXPECT_TRUE(find_rings(directory_).empty());
}

// A ring that has no final name yet has no lock either.
TEST_F(RecordedCalls, AreNotClearedWhileTheyAreMade) {
  const std::string hidden = directory_ + "/.made.ring";
  {
    const auto ring = make_ring();
    std::filesystem::copy_file(find_rings(directory_).at(0), hidden);
  }
  clear_rings(directory_);
  EXPECT_TRUE(find_rings(directory_).empty());
  EXPECT_TRUE(std::filesystem::exists(hidden));
}

TEST_F(RecordedCalls, AreNotReadFromOtherFiles) {
  std::ofstream(directory_ + "/1-0.ring") << std::string(sizeof(Ring), 'x');
  EXPECT_FALSE(CallRingReader::open(directory_ + "/1-0.ring"));
  std::ofstream(directory_ + "/2-0.ring") << "short";
  EXPECT_FALSE(CallRingReader::open(directory_ + "/2-0.ring"));
  EXPECT_FALSE(CallRingReader::open(directory_ + "/none.ring"));
}

TEST_F(RecordedCalls, LastAsLongAsTheLease) {
  auto mine = RecordingLease::open(directory_);
  const auto theirs = RecordingLease::open(directory_);
  ASSERT_TRUE(mine && theirs);
  EXPECT_FALSE(theirs->may_be_on());
  mine->extend(500);
  EXPECT_TRUE(theirs->may_be_on());
  EXPECT_TRUE(theirs->is_on(499));
  EXPECT_FALSE(theirs->is_on(500)) << "whoever records may have died";
  mine->end();
  EXPECT_FALSE(theirs->may_be_on());
}

TEST_F(RecordedCalls, HaveNoLeaseThroughALink) {
  std::filesystem::create_symlink("/dev/null", directory_ + "/recording.lease");
  EXPECT_FALSE(RecordingLease::open(directory_));
}

}  // namespace
}  // namespace cepheus::reports
