#include "support/reports/call_report.h"

#include <gtest/gtest.h>

namespace cepheus::reports {
namespace {

CallRecord some_record() {
  CallRecord record;
  record.state = RecordState::kLive;
  record.calls = 42;
  put_text(record.communicator, "MPI_COMM_WORLD");
  put_text(record.path, "bulk lane");
  put_text(record.reason, "multicast");
  return record;
}

ReportHeader some_header() {
  ReportHeader header;
  put_text(header.program, "prog");
  put_text(header.job, "");
  put_text(header.device, "");
  return header;
}

TEST(CallReport, GivesBackTheRecordsInUse) {
  CallRecord unused = some_record();
  unused.state = RecordState::kFree;
  auto bytes = CallReport{some_header(), {unused, some_record(), unused}}.bytes();
  bytes.resize(kReportStep);  // as a growing file: free records follow
  const auto report = CallReport::parse(bytes);
  ASSERT_TRUE(report);
  EXPECT_EQ(get_text(report->header.program), "prog");
  ASSERT_EQ(report->records.size(), 1u);
  EXPECT_EQ(report->records[0].calls, 42u);
  EXPECT_EQ(get_text(report->records[0].communicator), "MPI_COMM_WORLD");
  EXPECT_EQ(report->bytes().size(), 512u) << "what is in use, and no more";
}

TEST(CallReport, GivesBackTheChoices) {
  ChoiceRecord choice;
  choice.choice = {1, 3, 31'000, 75'000};
  put_text(choice.communicator, "MPI_COMM_WORLD");
  put_text(choice.sizes, "up to 64 KiB");
  put_text(choice.network, "multicast");
  put_text(choice.other, "open mpi");
  ChoiceRecord closed = choice;
  closed.state = RecordState::kClosedChoice;
  const auto report =
      CallReport::parse(CallReport{some_header(), {some_record()}, {choice, closed}}.bytes());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->records.size(), 1u);
  ASSERT_EQ(report->choices.size(), 2u);
  EXPECT_EQ(report->choices[0].choice.network_ns, 31'000u);
  EXPECT_EQ(get_text(report->choices[1].sizes), "up to 64 KiB");
  EXPECT_EQ(get_text(report->choices[1].network), "multicast");
  EXPECT_EQ(get_text(report->choices[1].other), "open mpi");
}

TEST(CallReport, RefusesOtherVersionsAndFilesWithoutAHeader) {
  ReportHeader header = some_header();
  header.version = kReportVersion + 1;
  EXPECT_FALSE(CallReport::parse(CallReport({header, {some_record()}}).bytes()));
  header = some_header();
  header.magic ^= 1;
  EXPECT_FALSE(CallReport::parse(CallReport({header, {some_record()}}).bytes()));
  const auto bytes = CallReport{some_header(), {}}.bytes();
  EXPECT_TRUE(CallReport::parse(bytes));
  EXPECT_FALSE(CallReport::parse(std::span(bytes).first(bytes.size() - 1)));
  EXPECT_FALSE(CallReport::parse({}));
}

TEST(CallReport, TakesNoTruncatedRecord) {
  auto bytes = CallReport{some_header(), {some_record(), some_record()}}.bytes();
  bytes.pop_back();
  EXPECT_EQ(CallReport::parse(bytes)->records.size(), 1u);
}

TEST(CallReport, TakesNoMoreRecordsThanAReportCanHave) {
  const std::vector<CallRecord> many(kMostRecords + 7, some_record());
  EXPECT_EQ(CallReport::parse(CallReport({some_header(), many}).bytes())->records.size(),
            kMostRecords);
}

TEST(CallReport, IgnoresRecordsOfUnknownStates) {
  CallRecord record = some_record();
  record.state = static_cast<RecordState>(77);
  EXPECT_TRUE(CallReport::parse(CallReport({some_header(), {record}}).bytes())->records.empty());
}

TEST(CallReport, TruncatesTextsAtTheirField) {
  std::array<char, 4> field;
  put_text(field, "abcdef");
  EXPECT_EQ(get_text(field), "abcd");
  put_text(field, "x");
  EXPECT_EQ(get_text(field), "x");
}

TEST(CallReport, LeavesOutACharacterThatIsTruncated) {
  std::array<char, 4> field;
  const auto kept = [&](const char* text) {
    put_text(field, text);
    return get_text(field);
  };
  EXPECT_EQ(kept("abcé"), "abc");
  EXPECT_EQ(kept("abé"), "abé");
  EXPECT_EQ(kept("a€"), "a€");
  EXPECT_EQ(kept("ab€"), "ab");
  EXPECT_EQ(kept("a😀"), "a");
  EXPECT_EQ(kept("😀"), "😀");
  EXPECT_EQ(kept("é€"), "é");
  // Other bytes than UTF-8 stay: the reader escapes them.
  EXPECT_EQ(kept("\xbf\xbf\xbf\xbf"), "\xbf\xbf\xbf\xbf");
}

}  // namespace
}  // namespace cepheus::reports
