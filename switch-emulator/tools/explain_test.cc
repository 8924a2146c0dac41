#include "switch-emulator/tools/explain.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "switch-emulator/ports/unique_fd.h"

namespace cepheus::tools {
namespace {

using testing::HasSubstr;
using wire::CallRecord;
using wire::RecordState;

CallRecord record(const char* communicator, std::uint32_t rank, const char* path,
                  const char* reason, std::uint64_t calls) {
  CallRecord r;
  r.state = RecordState::kLive;
  r.rank = rank;
  r.ranks = 4;
  r.calls = calls;
  wire::put_text(r.communicator, communicator);
  wire::put_text(r.path, path);
  wire::put_text(r.reason, reason);
  return r;
}

FoundReport report(std::uint32_t pid, const char* job, bool running,
                   std::vector<CallRecord> records) {
  FoundReport found;
  found.report.header.pid = pid;
  wire::put_text(found.report.header.program, "prog");
  wire::put_text(found.report.header.job, job);
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
  EXPECT_EQ(world.paths[1].reporting, 2u);
}

TEST(Explain, ShowsRunningJobsFirstAndSaysWhy) {
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
  EXPECT_THAT(to_text(jobs, false), HasSubstr("2000 that were freed"));
  const auto json = to_json(jobs);
  EXPECT_EQ(json["jobs"][0]["communicators"][0]["freed"], 2000);
  EXPECT_EQ(json["jobs"][0]["communicators"][0]["paths"][0]["calls"], 4000);
}

TEST(Explain, ReadsReportsAndTellsTheRunningFromTheEnded) {
  char pattern[] = "/tmp/explain-XXXXXX";
  const std::string directory = ::mkdtemp(pattern);
  const auto write = [&](const std::string& name, std::uint32_t pid) {
    std::vector<char> bytes(wire::kReportBytes);
    wire::ReportHeader header;
    header.pid = pid;
    wire::put_text(header.program, "prog");
    wire::put_text(header.job, "");
    std::memcpy(bytes.data(), &header, sizeof header);
    const std::string path = directory + "/" + name;
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    return path;
  };
  const std::string live = write(std::string("8") + wire::kReportSuffix, 8);
  write(std::string("9") + wire::kReportSuffix, 9);
  write("other", 10);
  std::ofstream(directory + "/11" + wire::kReportSuffix) << "no report";
  const fabric::UniqueFd holder(open(live.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(holder.get(), LOCK_EX | LOCK_NB), 0);
  const auto reports = read_reports(directory);
  ASSERT_TRUE(reports);
  ASSERT_EQ(reports->size(), 2u);
  EXPECT_TRUE((*reports)[0].is_running);
  EXPECT_FALSE((*reports)[1].is_running);
  std::filesystem::remove_all(directory);
  const auto none = read_reports(directory);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("CEPHEUS_REPORT_DIR"));
}

}  // namespace
}  // namespace cepheus::tools
