// The file in which a process says which path its collective calls took and why: one a process,
// read by `cepheusctl explain` while the process runs and after it has ended.
//
//   0     ReportHeader   256 bytes, written once
//   256   CallRecord     kReportRecords of 256 bytes, one per (communicator, path, reason)
//
// Native byte order: writer and reader share a machine. The writer alone maps the file for writing
// and holds a lock (flock) on it as long as it lives. A record's state is stored last, with
// release; `calls` grows by atomic stores. Texts end with a zero or with their field.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cepheus::wire {

inline constexpr std::uint32_t kReportMagic = 0x4345504D;
inline constexpr std::uint32_t kReportVersion = 1;
inline constexpr std::uint32_t kReportRecords = 1024;
inline constexpr char kReportSuffix[] = ".calls";

struct ReportHeader {
  std::uint32_t magic = kReportMagic;
  std::uint32_t version = kReportVersion;
  std::uint32_t records = kReportRecords;
  std::uint32_t pid = 0;
  std::array<char, 112> program;
  std::array<char, 128> job;  // the launcher's name of the job, or empty
};
static_assert(sizeof(ReportHeader) == 256);

enum class RecordState : std::uint32_t {
  kFree = 0,
  kLive = 1,
  kFolded = 2,  // of communicators gone for long: their calls, by path and reason
  kClosed = 3,  // of one that was freed lately
};

struct CallRecord {
  RecordState state = RecordState::kFree;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;  // kFolded: communicators in it
  std::uint32_t reserved = 0;
  std::uint64_t calls = 0;
  std::array<char, 56> communicator;
  std::array<char, 24> path;
  std::array<char, 152> reason;
};
static_assert(sizeof(CallRecord) == 256);

inline constexpr std::size_t kReportBytes =
    sizeof(ReportHeader) + kReportRecords * sizeof(CallRecord);

// Copies `text`, cut if need be, and clears the rest of the field.
void put_text(std::span<char> field, std::string_view text);
std::string get_text(std::span<const char> field);

// What a file says at one moment.
struct CallReport {
  ReportHeader header;
  std::vector<CallRecord> records;  // those in use, in the file's order

  // Empty: too short, not a report, or another version's.
  static std::optional<CallReport> parse(std::span<const std::uint8_t> file);
};

// Where processes of this user put their reports: $CEPHEUS_REPORT_DIR, else /dev/shm/cepheus-<uid>.
std::string report_directory();

}  // namespace cepheus::wire
