#include "libmcast/call_report.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace cepheus::mcast {
namespace {

using testing::HasSubstr;
using wire::CallRecord;
using wire::RecordState;

class Report : public testing::Test {
 protected:
  Report() {
    char pattern[] = "/tmp/call-report-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~Report() override { std::filesystem::remove_all(directory_); }

  std::string path() const {
    return directory_ + "/" + std::to_string(getpid()) + wire::kReportSuffix;
  }
  std::vector<CallRecord> records() const {
    std::ifstream file(path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const auto report = wire::CallReport::parse(
        {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    return report ? report->records : std::vector<CallRecord>{};
  }

  std::string directory_;
};

TEST_F(Report, CountsCallsByPathAndReason) {
  ReportFile file(directory_);
  ASSERT_TRUE(file.open());
  ReportScope world(file, "world", 2, 4);
  for (int i = 0; i < 3; ++i) world.count("eager lane", "multicast");
  world.count("bulk lane", "multicast");
  world.count("eager lane", "multicast");
  const auto found = records();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].calls, 4u);
  EXPECT_EQ(found[0].rank, 2u);
  EXPECT_EQ(found[0].ranks, 4u);
  EXPECT_EQ(wire::get_text(found[0].communicator), "world");
  EXPECT_EQ(wire::get_text(found[0].path), "eager lane");
  EXPECT_EQ(found[1].calls, 1u);
}

TEST_F(Report, FoldsCommunicatorsThatAreGoneSoThatThousandsFit) {
  ReportFile file(directory_);
  ASSERT_TRUE(file.open());
  for (int i = 0; i < 5000; ++i) {
    ReportScope dup(file, "dup", 0, 2);
    dup.count("eager lane", "multicast");
    dup.count("eager lane", "multicast");
  }
  const auto found = records();
  std::uint64_t calls = 0, folded = 0;
  for (const CallRecord& record : found) {
    calls += record.calls;
    if (record.state == RecordState::kFolded) folded += record.ranks;
  }
  EXPECT_LT(found.size(), 100u);
  EXPECT_EQ(calls, 10'000u);
  EXPECT_GT(folded, 4900u);
}

TEST_F(Report, KeepsTheNameOfACommunicatorThatWasFreedLately) {
  ReportFile file(directory_);
  ASSERT_TRUE(file.open());
  { ReportScope(file, "world", 0, 2).count("eager lane", "multicast"); }
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].state, RecordState::kClosed);
  EXPECT_EQ(wire::get_text(records()[0].communicator), "world");
}

TEST_F(Report, CountsNothingOnceAllRecordsAreInUse) {
  ReportFile file(directory_);
  ASSERT_TRUE(file.open());
  std::vector<std::unique_ptr<ReportScope>> scopes;
  for (std::uint32_t i = 0; i < wire::kReportRecords + 5; ++i) {
    scopes.push_back(std::make_unique<ReportScope>(file, "many", 0, 2));
    scopes.back()->count("eager lane", "multicast");
  }
  EXPECT_EQ(records().size(), wire::kReportRecords);
}

TEST_F(Report, LongReasonsAreCutAndStillOne) {
  ReportFile file(directory_);
  ASSERT_TRUE(file.open());
  ReportScope scope(file, "c", 0, 2);
  const std::string reason(400, 'r');
  scope.count("open mpi", reason.c_str());
  scope.count("open mpi", reason.c_str());
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].calls, 2u);
}

TEST_F(Report, IsHeldByALockWhileTheProcessLives) {
  {
    ReportFile file(directory_);
    ASSERT_TRUE(file.open());
    const int other = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_NE(flock(other, LOCK_SH | LOCK_NB), 0);
    close(other);
  }
  const int other = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(flock(other, LOCK_SH | LOCK_NB), 0);
  close(other);
}

TEST_F(Report, ClearsAwayOldReportsOfProcessesThatHaveEnded) {
  const std::string old = directory_ + "/1" + wire::kReportSuffix;
  const std::string fresh = directory_ + "/2" + wire::kReportSuffix;
  const std::string other = directory_ + "/notes";
  for (const auto& name : {old, fresh, other}) std::ofstream(name) << "x";
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), long_ago, 0), 0);
  ASSERT_EQ(utimensat(AT_FDCWD, other.c_str(), long_ago, 0), 0);
  ReportFile file(directory_);
  ASSERT_TRUE(file.open());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(fresh));
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST_F(Report, RefusesADirectoryThatIsALink) {
  const std::string link = directory_ + "/link";
  std::filesystem::create_directory_symlink("/tmp", link);
  ReportFile file(link);
  const auto opened = file.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text, HasSubstr("CEPHEUS_REPORT_DIR"));
}

TEST_F(Report, AForkedChildCountsNothingInItsParentsReport) {
  ReportFile file(directory_);
  ASSERT_TRUE(file.open());
  ReportScope scope(file, "c", 0, 2);
  scope.count("eager lane", "multicast");
  const pid_t child = fork();
  if (child == 0) {
    scope.count("eager lane", "multicast");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(records()[0].calls, 1u);
}

}  // namespace
}  // namespace cepheus::mcast
