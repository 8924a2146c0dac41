// The directory in which a user's processes leave their reports (call_report.h), and what of it is
// cleared away: reports of processes that ended more than an hour ago, and the oldest ones beyond
// what ended processes may leave.
//
// Names never come twice, and a report is locked before it has its name: one that is found without
// a lock belongs to no process any more. Whoever makes, ends or shows reports clears.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/reports/call_report.h"
#include "support/reports/file_system_space.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::reports {

// $CEPHEUS_REPORT_DIR, else first_not_taken("/dev/shm/cepheus-UID"): in memory, so that counting
// never waits for a disk that writes pages back, and one place for jobs and logins alike.
std::string default_directory();
// `path`, or the first of path.1, path.2, ... that no other user has: anybody may take a name in a
// directory like /dev/shm.
std::string first_not_taken(const std::string& path);

using SpaceProbe = std::function<FileSystemSpace(int fd)>;

class ReportDirectory {
 public:
  struct Entry {
    std::string name;
    std::chrono::nanoseconds changed{};  // since the epoch; of an ended one: when it ended
    std::uint64_t bytes = 0;             // that it takes of the file system
  };
  // A process's own report: kReportStep bytes, the header and free records.
  struct Own {
    std::string name;
    wire::UniqueFd file;  // locked
  };

  static constexpr std::size_t kMostEnded = 512;  // reports
  static constexpr std::chrono::seconds kKept{3600};
  static constexpr std::chrono::seconds kMakingTakes{60};  // at most: then its maker has died

  // Of this user, made if it isn't there.
  static wire::Result<ReportDirectory> make(const std::string& path,
                                            SpaceProbe room = FileSystemSpace::of);
  // For reading, of any user.
  static wire::Result<ReportDirectory> open(const std::string& path);

  // All reports, ended or not, the one longest unchanged first: plain files of the directory's
  // owner.
  std::vector<Entry> list() const;
  wire::UniqueFd open_report(const std::string& name, int flags) const;
  // Whether the process that writes it lives.
  static bool is_held(int report);

  // Fails if the file system has no room to spare, and says what to do.
  wire::Result<Own> create(const ReportHeader& header) const;
  // Gives it `bytes` in all, with zeros at the end.
  wire::Result<void> grow(const Own& report, std::size_t bytes) const;
  // What the report says now; empty if `report` is none.
  static std::optional<CallReport> read(int report);
  // Its process has no more to say. The report shrinks to what is in use and gives up its lock;
  // what was mapped of it stays mapped, with or without effect.
  void end(Own& report) const;

  // Nothing while another process clears, which leaves later reports to the next one, and in
  // directories of other users.
  void clear() const;

 private:
  explicit ReportDirectory(std::string path) : path_(std::move(path)) {}

  bool is_ours() const;
  std::vector<Entry> files(bool are_hidden) const;
  wire::Result<void> check_room(std::uint64_t bytes) const;
  wire::Result<wire::UniqueFd> write_hidden(const std::string& name,
                                            std::span<const std::uint8_t> bytes,
                                            std::size_t size) const;
  bool replace(const std::string& name, std::span<const std::uint8_t> bytes) const;
  void clear_hidden(std::chrono::nanoseconds now) const;
  void clear_old(std::vector<Entry>& reports, std::chrono::nanoseconds now) const;
  void clear_beyond_share(const std::vector<Entry>& reports) const;

  std::string path_;
  wire::UniqueFd fd_;
  uid_t owner_ = 0;
  SpaceProbe room_ = FileSystemSpace::of;
};

}  // namespace cepheus::reports
