// parse() reads at most kMostRecords whole records and skips those that are free or of an unknown
// state. Header texts and counts are not checked: readers treat them as untrusted. bytes() puts all
// choices behind all calls, so a file that was rewritten may have another order.
#include "support/reports/call_report.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cepheus::reports {
namespace {

// Bytes of the UTF-8 character that starts with `lead`; 1 if `lead` starts none.
std::size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

void put_text(std::span<char> field, std::string_view text) {
  const std::size_t n = std::min(text.size(), field.size());
  std::copy_n(text.begin(), n, field.begin());
  std::fill(field.begin() + static_cast<std::ptrdiff_t>(n), field.end(), '\0');
}

std::string get_text(std::span<const char> field) {
  std::string text(field.begin(), std::find(field.begin(), field.end(), '\0'));
  if (text.size() < field.size()) return text;
  std::size_t last = text.size() - 1;
  while (last > 0 && text.size() - last < 4 && continues_character(text[last])) --last;
  if (text.size() - last < character_bytes(text[last])) text.resize(last);
  return text;
}

std::optional<CallReport> CallReport::parse(std::span<const std::uint8_t> file) {
  if (file.size() < sizeof(ReportHeader)) return std::nullopt;
  std::optional<CallReport> report(std::in_place);
  std::memcpy(&report->header, file.data(), sizeof report->header);
  const ReportHeader& h = report->header;
  if (h.magic != kReportMagic || h.version != kReportVersion) return std::nullopt;
  const std::size_t records = std::min(records_in(file.size()), kMostRecords);
  for (std::size_t i = 0; i < records; ++i) {
    CallRecord record;
    std::memcpy(&record, file.data() + sizeof h + i * sizeof record, sizeof record);
    if (record.state >= RecordState::kLive && record.state <= RecordState::kClosed)
      report->records.push_back(record);
    if (record.state == RecordState::kChoice || record.state == RecordState::kClosedChoice)
      report->choices.push_back(std::bit_cast<ChoiceRecord>(record));
  }
  return report;
}

std::vector<std::uint8_t> CallReport::bytes() const {
  std::vector<std::uint8_t> file;
  const auto add = [&](const void* data, std::size_t bytes) {
    const auto* const from = static_cast<const std::uint8_t*>(data);
    file.insert(file.end(), from, from + bytes);
  };
  add(&header, sizeof header);
  for (const CallRecord& each : records) add(&each, sizeof each);
  for (const ChoiceRecord& each : choices) add(&each, sizeof each);
  return file;
}

}  // namespace cepheus::reports
