// This process's report of calls (support/reports/call_report.h) and the scopes that count in it,
// one for each communicator.
//
// The file is made at the first scope, grows with the records in use, and ends with the process.
// Counting is a comparison and an addition in shared memory: no system call, no lock. Without a
// file (no directory, or a full file system) scopes count nothing and return the reason.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/reports/call_report.h"
#include "support/reports/recorded_calls.h"
#include "support/reports/report_directory.h"
#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::coll {

class ReportFile {
 public:
  // Made at the first call, in a forked child again, and never destroyed: scopes may outlive static
  // destructors. It ends when the process exits or the library is unloaded. In the child of a fork
  // scopes of the parent count nothing.
  static ReportFile& instance();

  explicit ReportFile(std::string directory, reports::SpaceProbe space = reports::FreeSpace::of);
  ~ReportFile();

  // kUnavailable: the file can't be made. Go on without it.
  wire::Result<void> open();
  // No process counts in it any more: the file shrinks to the used part, and older files are
  // removed.
  void end();
  // Null if the report is full.
  reports::CallRecord* take(const reports::CallRecord& record);
  // The record's communicator is gone: its calls stay, under its name as long as few others follow,
  // and so do its choices.
  void retire(reports::CallRecord& record);
  // A call that has no record.
  void count_elsewhere();
  // The time, in nanoseconds of CLOCK_MONOTONIC, if calls are recorded, else 0. Two loads.
  std::int64_t begin_call();
  // The name of this process's job, where its launcher gives it none. Before the first call.
  static void set_job(const std::string& name);
  // This process's host in recordings.
  static void set_address(wire::Ipv4 address);
  // The device that serves the calls, and why it was taken. Any thread.
  void set_device(std::string text);
  // A call that began then and ends now.
  void keep(const reports::CallText& text, std::int64_t begin_ns, std::uint64_t bytes,
            std::uint32_t root);
  bool is_ours() const;

 private:
  static constexpr std::size_t kMostClosed = 64;
  static constexpr std::uint64_t kNobodys = ~std::uint64_t{0};

  wire::Result<void> make();
  reports::CallRecord* find_free();
  bool grow();
  void fold_oldest();
  reports::CallRing* ring();
  reports::ReportHeader& header() const;
  reports::CallRecord* records() const;

  const std::uint64_t made_in_;          // generation of forks
  const ReportFile* parents_ = nullptr;  // so that a search for leaks finds it
  const std::string path_;
  const reports::SpaceProbe space_;
  std::mutex mutex_;
  std::optional<reports::ReportDirectory> directory_;
  reports::ReportDirectory::Own own_;
  std::string device_;
  std::uint64_t refusals_ = 0;  // since the process began
  wire::Error refusal_;         // the last
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;  // of the file; more is mapped
  std::size_t next_ = 0;
  std::deque<reports::CallRecord*> closed_;     // oldest first
  std::atomic<std::uint64_t> forks_{kNobodys};  // generation that made the file
  // Made with the first file, and kept: forked children record under the same lease.
  std::optional<reports::RecordingLease> owned_lease_;
  std::atomic<reports::RecordingLease*> lease_{nullptr};
  std::unique_ptr<reports::CallRing> ring_;  // made when a lease is first in force
  bool has_no_ring_ = false;                 // there was no space for one
};

// One communicator's counts. One thread at a time.
class ReportScope {
 public:
  ReportScope(ReportFile& file, const char* name, unsigned rank, unsigned ranks);
  ~ReportScope();
  ReportScope(const ReportScope&) = delete;
  ReportScope& operator=(const ReportScope&) = delete;

  void count(const char* path, const char* reason);
  // Which way serves calls of some sizes; the newest choice for the same `sizes` replaces the one
  // before.
  struct Ways {
    const char *network, *other;
  };
  void choose(const char* sizes, const Ways& ways, const reports::Choice& choice);
  // The last counted call, with its times.
  void keep(const char* path, const char* reason, std::int64_t begin_ns, std::uint64_t bytes,
            std::uint32_t root);

 private:
  static constexpr std::size_t kMostRecords = 32;  // paths and reasons of one communicator

  bool is_ours() const;
  reports::CallRecord* find(const char* path, const char* reason) const;
  reports::CallRecord* add(const char* path, const char* reason);
  reports::ChoiceRecord* choice_of(const char* sizes, const Ways& ways);

  ReportFile& file_;
  const std::uint64_t forks_;
  reports::CallRecord blank_;
  std::array<reports::CallRecord*, kMostRecords> records_{};
  std::size_t used_ = 0;
  std::vector<reports::ChoiceRecord*> choices_;
  reports::CallRecord* last_ = nullptr;
  std::uint64_t missed_ = 0;  // calls without a record
};

}  // namespace cepheus::coll
