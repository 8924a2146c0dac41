// This process's report of calls (wire/call_report.h) and the scopes that count in it: what
// mcast_report_h names.
//
// The file is made at the first scope. Counting is a comparison and an addition in shared memory:
// no system call, no lock. Without a file (no directory, no space) scopes count nothing and say
// why.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "libmcast/failure.h"
#include "wire/call_report.h"

namespace cepheus::mcast {

class ReportFile {
 public:
  // Made at the first call and never destroyed. In the child of a fork scopes of the parent count
  // nothing.
  static ReportFile& instance();

  explicit ReportFile(std::string directory) : directory_(std::move(directory)) {}
  ~ReportFile();
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  // MCAST_ERR_NO_MEMORY: the file can't be made.
  Outcome<void> open();
  // Null if all records are in use.
  wire::CallRecord* take(const wire::CallRecord& record);
  // The record's communicator is gone: its calls stay, under its name as long as few others follow.
  void retire(wire::CallRecord& record);
  bool is_ours() const;

 private:
  static constexpr std::size_t kMostClosed = 64;

  Outcome<void> make();
  void fold(wire::CallRecord& record);
  wire::CallRecord* records() const;

  const std::string directory_;
  std::mutex mutex_;
  void* memory_ = nullptr;
  int fd_ = -1;  // holds the lock that says we live
  std::uint32_t next_ = 0;
  std::deque<wire::CallRecord*> closed_;  // oldest first
  std::uint64_t forks_ = 0;               // generation that made the file
};

// One communicator's. One thread at a time.
class ReportScope {
 public:
  ReportScope(ReportFile& file, const char* name, unsigned rank, unsigned ranks);
  ~ReportScope();
  ReportScope(const ReportScope&) = delete;
  ReportScope& operator=(const ReportScope&) = delete;

  void count(const char* path, const char* reason);

 private:
  static constexpr std::size_t kMostRecords = 16;  // paths and reasons of one communicator

  bool is_ours() const;
  wire::CallRecord* find(const char* path, const char* reason) const;

  ReportFile& file_;
  const std::uint64_t forks_;
  wire::CallRecord blank_;
  std::array<wire::CallRecord*, kMostRecords> records_{};
  std::size_t used_ = 0;
  wire::CallRecord* last_ = nullptr;
};

}  // namespace cepheus::mcast
