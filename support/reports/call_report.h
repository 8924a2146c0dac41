// A process's file of its collective calls by path and reason. `cepheusctl explain` reads it while
// the process runs and after it has ended.
//
//   0     ReportHeader   256 bytes
//   256   CallRecord     up to kMostRecords of 256 bytes, one per (communicator, path, reason), or
//         ChoiceRecord   one per (communicator, size class)
//
// Native byte order: writer and reader share a machine. A file grows by kReportStep while records
// are added; after its process has ended it keeps only records in use. Only the writer maps it for
// writing, and locks it (flock) until it ends. A record's state is stored last, with release;
// `calls` grows by atomic stores. Texts end with a zero or with their field.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cepheus::reports {

inline constexpr std::uint32_t kReportMagic = 0x4345504D;
inline constexpr std::uint32_t kReportVersion = 5;

struct ReportHeader {
  std::uint32_t magic = kReportMagic;
  std::uint32_t version = kReportVersion;
  std::uint32_t pid = 0;
  std::uint32_t ended = 0;  // 1: the process ended in order. 0 in a file without a lock: it died.
  std::uint64_t uncounted = 0;  // calls without a record, because the file was full
  std::array<char, 40> program;
  std::array<char, 80> job;      // the launcher's name of the job, or empty
  std::array<char, 112> device;  // the RDMA device opened last, with the reason; empty: none
};
static_assert(sizeof(ReportHeader) == 256);

enum class RecordState : std::uint32_t {
  kFree = 0,
  kLive = 1,
  kFolded = 2,  // calls of communicators freed long ago, by path and reason
  kClosed = 3,  // of a communicator freed recently
  kChoice = 4,  // a ChoiceRecord
  kClosedChoice = 5,
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

// The chosen way for calls of some sizes on a communicator, as rank 0 has decided.
struct Choice {
  std::uint64_t by_network = 0;                // 0: the other way
  std::uint64_t comparisons = 0;               // of both ways
  std::uint64_t network_ns = 0, other_ns = 0;  // of one call, at the last comparison
};
struct ChoiceRecord {
  RecordState state = RecordState::kChoice;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t reserved = 0;
  Choice choice;
  std::array<char, 56> communicator;
  std::array<char, 24> sizes;    // "up to 64 KiB", "allreduce up to 8 B"
  std::array<char, 24> network;  // the way by the network: "multicast"
  std::array<char, 24> other;    // the other way: "open mpi"
  std::array<char, 80> unused{};
};
static_assert(sizeof(ChoiceRecord) == sizeof(CallRecord));

inline constexpr std::size_t kReportStep = 4096;
inline constexpr std::size_t kMostReportBytes = 256 << 10;

// The number of records in a file of `bytes`.
constexpr std::size_t records_in(std::size_t bytes) {
  return bytes < sizeof(ReportHeader) ? 0 : (bytes - sizeof(ReportHeader)) / sizeof(CallRecord);
}
inline constexpr std::size_t kMostRecords = records_in(kMostReportBytes);

// Copies `text`, truncated to the field, and clears the rest of the field.
void put_text(std::span<char> field, std::string_view text);
// Drops a truncated UTF-8 character at the end.
std::string get_text(std::span<const char> field);

// A snapshot of a file.
struct CallReport {
  ReportHeader header;
  std::vector<CallRecord> records;  // records in use, in the file's order
  std::vector<ChoiceRecord> choices = {};

  // Empty: too short, not a report, or another version's.
  static std::optional<CallReport> parse(std::span<const std::uint8_t> file);
  // A file with exactly this content.
  std::vector<std::uint8_t> bytes() const;
};

}  // namespace cepheus::reports
