#include "wire/call_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cepheus::wire {

void put_text(std::span<char> field, std::string_view text) {
  const std::size_t n = std::min(text.size(), field.size());
  std::copy_n(text.begin(), n, field.begin());
  std::fill(field.begin() + static_cast<std::ptrdiff_t>(n), field.end(), '\0');
}

std::string get_text(std::span<const char> field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

std::optional<CallReport> CallReport::parse(std::span<const std::uint8_t> file) {
  if (file.size() < kReportBytes) return std::nullopt;
  std::optional<CallReport> report(std::in_place);
  std::memcpy(&report->header, file.data(), sizeof report->header);
  const ReportHeader& h = report->header;
  if (h.magic != kReportMagic || h.version != kReportVersion || h.records != kReportRecords) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < kReportRecords; ++i) {
    CallRecord record;
    std::memcpy(&record, file.data() + sizeof h + i * sizeof record, sizeof record);
    if (record.state >= RecordState::kLive && record.state <= RecordState::kClosed) {
      report->records.push_back(record);
    }
  }
  return report;
}

std::string report_directory() {
  const char* chosen = std::getenv("CEPHEUS_REPORT_DIR");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return "/dev/shm/cepheus-" + std::to_string(getuid());
}

}  // namespace cepheus::wire
