// The directory of a user's reports (call_report.h). clear() removes reports of processes that ended
// more than an hour ago, and the oldest ones beyond the limit of ended processes.
//
// Names never repeat, and a report is locked before it gets its name. So the process of a report
// without a lock has ended. Programs clear when they make, end or show reports.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/reports/call_report.h"
#include "support/reports/free_space.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::reports {

// Names of files of which every process has its own:
// "<pid>-<64 random bits><suffix>": process numbers repeat, and containers with one /dev/shm have
// numbers of their own.
std::string new_name(std::string_view suffix);

// $CEPHEUS_REPORT_DIR, else first_not_taken("/dev/shm/cepheus-UID"). Memory, so that counting never
// waits for a disk; one place for jobs and logins.
std::string default_directory();
// `path`, or the first of path.1, path.2, ... that belongs to no other user: in /dev/shm any user
// may create any name.
std::string first_not_taken(const std::string& path);

using SpaceProbe = std::function<FreeSpace(int fd)>;

class ReportDirectory {
 public:
  struct Entry {
    std::string name;
    std::chrono::nanoseconds changed{};  // since the epoch; of an ended one: when it ended
    std::uint64_t bytes = 0;             // on the file system
  };
  // A process's own report: kReportStep bytes, the header and free records.
  struct Own {
    std::string name;
    wire::UniqueFd file;  // locked
  };

  static constexpr std::size_t kMostEnded = 512;  // reports
  static constexpr std::chrono::seconds kKept{3600};
  static constexpr std::chrono::seconds kMakingTakes{
      60};  // longest time to make a report; later its process is dead

  // This user's directory; creates a missing one.
  static wire::Result<ReportDirectory> make(const std::string& path,
                                            SpaceProbe space = FreeSpace::of);
  // For reading, of any user.
  static wire::Result<ReportDirectory> open(const std::string& path);

  // All reports, ended or not, the one longest unchanged first: plain files of the directory's
  // owner.
  std::vector<Entry> list() const;
  wire::UniqueFd open_report(const std::string& name, int flags) const;
  // True if the process that writes it runs.
  static bool is_held(int report);

  // Fails if the file system has too little free space; the error has the remedy.
  wire::Result<Own> create(const ReportHeader& header) const;
  // Grows it to `bytes` with zeros.
  wire::Result<void> grow(const Own& report, std::size_t bytes) const;
  // A snapshot of the report; empty if `report` is not one.
  static std::optional<CallReport> read(int report);
  // Ends the report of this process: truncates it to the used part and unlocks it. Mappings stay
  // valid, but later writes may have no effect.
  void end(Own& report) const;

  // Does nothing while another process clears, or in directories of other users. Reports that end
  // meanwhile stay until the next clear().
  void clear() const;

 private:
  explicit ReportDirectory(std::string path) : path_(std::move(path)) {}

  bool is_ours() const;
  std::vector<Entry> files(bool are_hidden) const;
  wire::Result<void> check_space(std::uint64_t bytes) const;
  wire::Result<wire::UniqueFd> write_hidden(const std::string& name,
                                            std::span<const std::uint8_t> bytes,
                                            std::size_t size) const;
  bool replace(const std::string& name, std::span<const std::uint8_t> bytes) const;
  void clear_hidden(std::chrono::nanoseconds now) const;
  void clear_old(std::vector<Entry>& reports, std::chrono::nanoseconds now) const;
  void clear_beyond_limit(const std::vector<Entry>& reports) const;

  std::string path_;
  wire::UniqueFd fd_;
  uid_t owner_ = 0;
  SpaceProbe space_ = FreeSpace::of;
};

}  // namespace cepheus::reports
