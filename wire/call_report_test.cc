#include "wire/call_report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace cepheus::wire {
namespace {

std::vector<std::uint8_t> file_of(const ReportHeader& header, const CallRecord& record,
                                  std::size_t index) {
  std::vector<std::uint8_t> bytes(kReportBytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header + index * sizeof record, &record, sizeof record);
  return bytes;
}

CallRecord some_record() {
  CallRecord record;
  record.state = RecordState::kLive;
  record.calls = 42;
  put_text(record.communicator, "MPI_COMM_WORLD");
  put_text(record.path, "bulk lane");
  put_text(record.reason, "multicast");
  return record;
}

TEST(CallReport, GivesBackTheRecordsInUse) {
  ReportHeader header;
  put_text(header.program, "prog");
  put_text(header.job, "");
  const auto report = CallReport::parse(file_of(header, some_record(), kReportRecords - 1));
  ASSERT_TRUE(report);
  EXPECT_EQ(get_text(report->header.program), "prog");
  ASSERT_EQ(report->records.size(), 1u);
  EXPECT_EQ(report->records[0].calls, 42u);
  EXPECT_EQ(get_text(report->records[0].communicator), "MPI_COMM_WORLD");
}

TEST(CallReport, RefusesOtherVersionsAndShortFiles) {
  ReportHeader header;
  header.version = kReportVersion + 1;
  EXPECT_FALSE(CallReport::parse(file_of(header, some_record(), 0)));
  auto bytes = file_of(ReportHeader{}, some_record(), 0);
  EXPECT_TRUE(CallReport::parse(bytes));
  bytes.pop_back();
  EXPECT_FALSE(CallReport::parse(bytes));
  EXPECT_FALSE(CallReport::parse({}));
}

TEST(CallReport, IgnoresRecordsOfUnknownStates) {
  CallRecord record = some_record();
  record.state = static_cast<RecordState>(77);
  EXPECT_TRUE(CallReport::parse(file_of(ReportHeader{}, record, 0))->records.empty());
}

TEST(CallReport, CutsTextsAtTheirField) {
  std::array<char, 4> field;
  put_text(field, "abcdef");
  EXPECT_EQ(get_text(field), "abcd");
  put_text(field, "x");
  EXPECT_EQ(get_text(field), "x");
}

TEST(CallReport, DirectoryIsTheUsersOrAsTold) {
  ::setenv("CEPHEUS_REPORT_DIR", "/elsewhere", 1);
  EXPECT_EQ(report_directory(), "/elsewhere");
  ::unsetenv("CEPHEUS_REPORT_DIR");
  EXPECT_EQ(report_directory().rfind("/dev/shm/cepheus-", 0), 0u);
}

}  // namespace
}  // namespace cepheus::wire
