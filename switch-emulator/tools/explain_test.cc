#include "switch-emulator/tools/explain.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "support/reports/report_directory.h"
#include "switch-emulator/live/status/printable.h"

namespace cepheus::tools {
namespace {

using reports::CallRecord;
using reports::RecordState;
using reports::ReportDirectory;
using testing::HasSubstr;
using testing::Not;

CallRecord record(const char* communicator, std::uint32_t rank, const char* path,
                  const char* reason, std::uint64_t calls) {
  CallRecord r;
  r.state = RecordState::kLive;
  r.rank = rank;
  r.ranks = 4;
  r.calls = calls;
  reports::put_text(r.communicator, communicator);
  reports::put_text(r.path, path);
  reports::put_text(r.reason, reason);
  return r;
}

FoundReport report(std::uint32_t pid, const char* job, bool running,
                   std::vector<CallRecord> records) {
  FoundReport found;
  found.report.header.pid = pid;
  reports::put_text(found.report.header.program, "prog");
  reports::put_text(found.report.header.job, job);
  reports::put_text(found.report.header.device, "mlx5_0, the only one");
  found.report.records = std::move(records);
  found.is_running = running;
  return found;
}

TEST(Explain, GathersTheRanksOfAJobByCommunicatorAndPath) {
  const auto jobs =
      explain({report(11, "job1", true,
                      {record("world", 1, "eager lane", "multicast", 99),
                       record("world", 1, "open mpi", "registration timed out", 500)}),
               report(10, "job1", true,
                      {record("world", 0, "eager lane", "multicast", 100),
                       record("dup", 0, "bulk lane", "multicast", 3)})});
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].processes, 2u);
  ASSERT_EQ(jobs[0].communicators.size(), 2u);
  const CommunicatorUse& world = jobs[0].communicators[1];
  EXPECT_EQ(world.name, "world");
  ASSERT_EQ(world.paths.size(), 2u);
  EXPECT_EQ(world.paths[0].reason, "registration timed out");
  EXPECT_EQ(world.paths[1].calls, 100u) << "the lowest rank's";
  EXPECT_EQ(world.paths[1].fewest, 99u);
  EXPECT_EQ(world.paths[1].ranks_reporting, 2u);
}

TEST(Explain, ShowsTheWayAndTheTimeOfEachSize) {
  reports::ChoiceRecord choice;
  choice.ranks = 4;
  choice.choice = {0, 3, 410'250, 62'000};
  reports::put_text(choice.communicator, "world");
  reports::put_text(choice.sizes, "up to 64 KiB");
  reports::put_text(choice.network, "multicast");
  reports::put_text(choice.other, "open mpi");
  FoundReport leader = report(10, "job", true, {record("world", 0, "open mpi", "faster", 100)});
  leader.report.choices = {choice};
  const auto jobs = explain({leader, report(11, "job", true, {})});
  const std::string text = to_text(jobs, false);
  EXPECT_THAT(text,
              HasSubstr("  world         up to 64 KiB  open mpi  410.2 us  62.0 us         3"));
  const auto written = to_json(jobs)["jobs"][0]["communicators"][0]["sizes"];
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0]["way"], "open mpi");
  EXPECT_EQ(written[0]["network_us"], 410.25);
}

TEST(Explain, NamesTheWayOfReductions) {
  reports::ChoiceRecord choice;
  choice.ranks = 4;
  choice.choice = {1, 3, 20'000, 30'000};
  reports::put_text(choice.communicator, "world");
  reports::put_text(choice.sizes, "allreduce up to 8 B");
  reports::put_text(choice.network, "network");
  reports::put_text(choice.other, "messages");
  FoundReport leader = report(10, "job", true, {});
  leader.report.choices = {choice};
  const auto jobs = explain({leader});
  EXPECT_THAT(to_text(jobs, false), HasSubstr("allreduce up to 8 B  network"));
  EXPECT_EQ(to_json(jobs)["jobs"][0]["communicators"][0]["sizes"][0]["other"], "messages");
}

// MPI_Comm_split names the communicators of all its colours alike.
TEST(Explain, ShowsCommunicatorsOfOneNameInOneRowForEachSizeAndWay) {
  const auto choice = [](std::uint64_t by_network, std::uint64_t comparisons, std::uint64_t ns) {
    reports::ChoiceRecord one;
    one.ranks = 4;
    one.choice = {by_network, comparisons, ns, 2 * ns};
    reports::put_text(one.communicator, "split");
    reports::put_text(one.sizes, "up to 64 KiB");
    reports::put_text(one.network, "multicast");
    reports::put_text(one.other, "open mpi");
    return one;
  };
  FoundReport one = report(10, "job", true, {}), other = report(11, "job", true, {});
  one.report.choices = {choice(1, 1, 10'000)};
  other.report.choices = {choice(1, 3, 30'000), choice(0, 2, 50'000)};
  const auto written = to_json(explain({one, other}))["jobs"][0]["communicators"][0]["sizes"];
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0]["comparisons"], 4);
  EXPECT_EQ(written[0]["network_us"], 25) << "the mean of all comparisons";
  EXPECT_EQ(written[0]["other_us"], 50);
  EXPECT_EQ(written[1]["way"], "open mpi");
}

TEST(Explain, ShowsRunningJobsFirstWithReasons) {
  const auto jobs =
      explain({report(1, "a", false, {record("w", 0, "eager lane", "multicast", 1)}),
               report(2, "", true, {record("w", 0, "open mpi", "one node only", 7)})});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].job, "pid 2");
  const std::string text = to_text(jobs, false);
  EXPECT_THAT(text, HasSubstr("pid 2: prog, 1 process, 1 running"));
  EXPECT_THAT(text, HasSubstr("open mpi  one node only"));
  EXPECT_THAT(text, HasSubstr("a: prog, 1 process, ended"));
}

TEST(Explain, ShowsFreedCommunicatorsInOneRow) {
  CallRecord folded = record("(freed)", 0, "eager lane", "multicast", 4000);
  folded.state = RecordState::kFolded;
  folded.ranks = 2000;
  const auto jobs = explain({report(1, "a", true, {folded})});
  EXPECT_THAT(to_text(jobs, false), HasSubstr("2000 freed"));
  const auto written = to_json(jobs);
  EXPECT_EQ(written["jobs"][0]["communicators"][0]["freed"], 2000);
  EXPECT_EQ(written["jobs"][0]["communicators"][0]["paths"][0]["calls"], 4000);
}

TEST(Explain, ShowsTheJobThatEndedLastBeforeEarlierOnes) {
  FoundReport early = report(1, "a", false, {}), late = report(2, "b", false, {});
  early.changed = std::chrono::seconds(100);
  late.changed = std::chrono::seconds(200);
  const auto jobs = explain({early, report(3, "c", true, {}), late});
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].job, "c");
  EXPECT_EQ(jobs[1].job, "b");
}

TEST(Explain, TreatsTwoProcessesWithOnePidAsTwoJobs) {
  FoundReport before = report(7, "", false, {}), now = report(7, "", true, {});
  before.name = "7-0.calls";
  now.name = "7-1.calls";
  const auto jobs = explain({before, now});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].job, "pid 7");
  EXPECT_EQ(jobs[0].running, 1u);
  EXPECT_EQ(jobs[1].job, "pid 7");
}

TEST(Explain, CountsCallsWithoutARow) {
  FoundReport full = report(1, "a", true, {record("w", 0, "open mpi", "one node only", 7)});
  EXPECT_THAT(to_text(explain({full}), false), Not(HasSubstr("without a row")));
  full.report.header.uncounted = 12;
  const auto jobs = explain({full, full});
  EXPECT_THAT(to_text(jobs, false), HasSubstr("and 24 calls without a row"));
  EXPECT_EQ(to_json(jobs)["jobs"][0]["uncounted"], 24);
}

TEST(Explain, ShowsDevicesWithReasons) {
  FoundReport other = report(3, "a", true, {}), none = report(4, "a", true, {});
  reports::put_text(other.report.header.device, "mlx5_1, nearest: at NUMA node 1");
  reports::put_text(none.report.header.device, "");
  const auto jobs = explain({report(1, "a", true, {}), report(2, "a", true, {}), other, none});
  const std::string text = to_text(jobs, false);
  EXPECT_THAT(text, HasSubstr("  device of 2 processes: mlx5_0, the only one\n"));
  EXPECT_THAT(text, HasSubstr("  device of 1 process: mlx5_1, nearest: at NUMA node 1\n"));
  const auto written = to_json(jobs)["jobs"][0]["devices"];
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0]["processes"], 2);
  EXPECT_EQ(written[0]["device"], "mlx5_0, the only one");
}

TEST(Explain, NoTextOfAReportControlsTheTerminal) {
  FoundReport hostile = report(1, "j\x1b[2J", true, {record("c\x1b]0;", 0, "p\n", "\xC2\x9B", 7)});
  reports::put_text(hostile.report.header.program, "\x1b[31mprog");
  reports::put_text(hostile.report.header.device, "\x1b[5m");
  EXPECT_EQ(to_text(explain({hostile}), false),
            "j\\x1b[2J: \\x1b[31mprog, 1 process, 1 running\n"
            "  COMMUNICATOR  RANKS  CALLS  PATH   REASON\n"
            "  c\\x1b]0;          4      7  p\\x0a  \\x9b\n"
            "  device of 1 process: \\x1b[5m\n");
}

class ReportFiles : public testing::Test {
 protected:
  ReportFiles() {
    char pattern[] = "/dev/shm/explain-XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~ReportFiles() override { std::filesystem::remove_all(path_); }

  ReportDirectory::Own make_report() const {
    reports::ReportHeader header;
    header.pid = 8;
    reports::put_text(header.program, "prog");
    reports::put_text(header.job, "");
    reports::put_text(header.device, "");
    return std::move(*ReportDirectory::make(path_)->create(header));
  }
  std::string path_;
};

TEST_F(ReportFiles, DistinguishTheRunningFromTheEnded) {
  const auto running = make_report();
  make_report();
  const auto found = read_reports(path_);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  for (const FoundReport& one : *found) EXPECT_EQ(one.is_running, one.name == running.name);
}

TEST_F(ReportFiles, AreClearedWhenTheyAreOld) {
  const std::string path = path_ + "/1-old.calls";
  std::ofstream(path) << "of an older version";
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  EXPECT_TRUE(read_reports(path_)->empty());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ReportFiles, ThatHoldAnythingAreReadOrSkipped) {
  make_report();
  std::mt19937 random(20);
  const reports::CallReport valid{{}, std::vector<CallRecord>(3)};
  for (int i = 0; i < 200; ++i) {
    auto bytes = valid.bytes();
    bytes.resize(random() % (2 * reports::kReportStep));
    // From the pid on: a report by its first bytes, and none by any others.
    for (std::size_t at = i % 2 == 0 ? 0 : 8; at < bytes.size(); ++at) {
      bytes[at] = static_cast<std::uint8_t>(random());
    }
    std::ofstream(path_ + "/" + std::to_string(i) + ".calls", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  const auto found = read_reports(path_);
  ASSERT_TRUE(found);
  EXPECT_GT(found->size(), 50u);
  const auto jobs = explain(*found);
  EXPECT_THAT(to_text(jobs, true), HasSubstr("pid 8"));
  EXPECT_NO_THROW(live::json_text(to_json(jobs)));
}

TEST(Explain, NamesTheRemedyForAMissingDirectory) {
  const auto none = read_reports("/nonexistent/reports");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("CEPHEUS_REPORT_DIR"));
}

}  // namespace
}  // namespace cepheus::tools
