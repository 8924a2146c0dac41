#include "libmcast/call_report.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "libmcast/process.h"

namespace cepheus::mcast {
namespace {

using wire::CallRecord;
using wire::RecordState;

// Reports of processes that have ended are cleared away once they are an hour old.
constexpr std::time_t kKeptSeconds = 3600;
constexpr int kMostLookedAt = 4096;  // files of one clearing

tl::unexpected<Failure> fail_errno(const std::string& what) {
  return fail(MCAST_ERR_NO_MEMORY, errno_text(what, errno) + "; set CEPHEUS_REPORT_DIR");
}

bool is_own_directory(const std::string& path) {
  struct stat there {};
  return lstat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode) && there.st_uid == geteuid();
}

void clear_old(const std::string& directory) {
  DIR* const listing = opendir(directory.c_str());
  if (listing == nullptr) return;
  const std::time_t now = std::time(nullptr);
  constexpr std::string_view kSuffix = wire::kReportSuffix;
  int looked_at = 0;
  while (const dirent* entry = readdir(listing)) {
    if (++looked_at > kMostLookedAt) break;
    const std::string_view name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    const int file = openat(dirfd(listing), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    struct stat there {};
    const bool ended = flock(file, LOCK_EX | LOCK_NB) == 0;
    if (ended && fstat(file, &there) == 0 && there.st_mtime + kKeptSeconds < now) {
      unlinkat(dirfd(listing), entry->d_name, 0);
    }
    close(file);
  }
  closedir(listing);
}

void store_state(CallRecord& record, RecordState state) {
  std::atomic_ref(record.state).store(state, std::memory_order_release);
}

void add_calls(CallRecord& record, std::uint64_t n) {
  std::atomic_ref(record.calls).fetch_add(n, std::memory_order_relaxed);
}

std::uint64_t calls_of(CallRecord& record) {
  return std::atomic_ref(record.calls).load(std::memory_order_relaxed);
}

template <std::size_t N>
bool holds(const std::array<char, N>& field, const char* text) {
  return std::strncmp(field.data(), text, N) == 0;
}

}  // namespace

ReportFile& ReportFile::instance() {
  static ReportFile* const file = new ReportFile(wire::report_directory());
  return *file;
}

ReportFile::~ReportFile() {
  if (memory_ != nullptr) munmap(memory_, wire::kReportBytes);
  if (fd_ >= 0) close(fd_);
}

bool ReportFile::is_ours() const {
  return memory_ != nullptr && forks_ == Process::instance().fork_generation();
}

CallRecord* ReportFile::records() const {
  return reinterpret_cast<CallRecord*>(static_cast<char*>(memory_) + sizeof(wire::ReportHeader));
}

Outcome<void> ReportFile::open() {
  const std::lock_guard lock(mutex_);
  return is_ours() ? Outcome<void>{} : make();
}

Outcome<void> ReportFile::make() {
  if (mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno("can't make " + directory_);
  }
  if (!is_own_directory(directory_)) {
    return fail(MCAST_ERR_NO_MEMORY,
                directory_ + " is not a directory of this user; set CEPHEUS_REPORT_DIR");
  }
  clear_old(directory_);
  const std::string path = directory_ + "/" + std::to_string(getpid()) + wire::kReportSuffix;
  unlink(path.c_str());  // of an earlier process with this number
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return fail_errno("can't create " + path);
  // Others that look at it hold the lock for moments.
  void* memory = MAP_FAILED;
  if (flock(file, LOCK_EX) == 0 &&
      posix_fallocate(file, 0, static_cast<off_t>(wire::kReportBytes)) == 0) {
    memory = mmap(nullptr, wire::kReportBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED) {
    auto failure = fail_errno("can't write " + path);
    unlink(path.c_str());
    close(file);
    return failure;
  }
  // What a parent mapped stays as it is: scopes from before the fork refer to it.
  memory_ = memory;
  fd_ = file;
  forks_ = Process::instance().fork_generation();
  next_ = 0;
  closed_.clear();
  wire::ReportHeader header;
  header.pid = static_cast<std::uint32_t>(getpid());
  wire::put_text(header.program, program_invocation_short_name);
  const char* job = std::getenv("PMIX_NAMESPACE");
  wire::put_text(header.job, job == nullptr ? "" : job);
  std::memcpy(memory_, &header, sizeof header);
  return {};
}

CallRecord* ReportFile::take(const CallRecord& record) {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return nullptr;
  for (std::uint32_t i = 0; i < wire::kReportRecords; ++i) {
    CallRecord& slot = records()[(next_ + i) % wire::kReportRecords];
    if (slot.state != RecordState::kFree) continue;
    next_ = (next_ + i + 1) % wire::kReportRecords;
    CallRecord filled = record;
    filled.state = RecordState::kFree;
    std::memcpy(&slot, &filled, sizeof slot);
    store_state(slot, record.state);
    return &slot;
  }
  return nullptr;
}

void ReportFile::retire(CallRecord& record) {
  CallRecord* oldest = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!is_ours()) return;
    store_state(record, RecordState::kClosed);
    closed_.push_back(&record);
    if (closed_.size() > kMostClosed) {
      oldest = closed_.front();
      closed_.pop_front();
    }
  }
  if (oldest != nullptr) fold(*oldest);
}

// Adds the record's calls to those of other communicators that are gone, and frees it.
void ReportFile::fold(CallRecord& record) {
  CallRecord folded = record;
  folded.state = RecordState::kFolded;
  folded.rank = 0;
  folded.ranks = 1;
  folded.calls = calls_of(record);
  wire::put_text(folded.communicator, "(freed)");
  bool found = false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_ours()) return;
    for (std::uint32_t i = 0; i < wire::kReportRecords && !found; ++i) {
      CallRecord& slot = records()[i];
      found = slot.state == RecordState::kFolded && slot.path == record.path &&
              slot.reason == record.reason;
      if (!found) continue;
      add_calls(slot, folded.calls);
      std::atomic_ref(slot.ranks).fetch_add(1, std::memory_order_relaxed);
    }
    store_state(record, RecordState::kFree);
  }
  if (!found) static_cast<void>(take(folded));
}

ReportScope::ReportScope(ReportFile& file, const char* name, unsigned rank, unsigned ranks)
    : file_(file), forks_(Process::instance().fork_generation()) {
  blank_.state = RecordState::kLive;
  blank_.rank = rank;
  blank_.ranks = ranks;
  wire::put_text(blank_.communicator, name);
}

ReportScope::~ReportScope() {
  if (!is_ours()) return;
  for (std::size_t i = 0; i < used_; ++i) file_.retire(*records_[i]);
}

bool ReportScope::is_ours() const {
  return file_.is_ours() && forks_ == Process::instance().fork_generation();
}

CallRecord* ReportScope::find(const char* path, const char* reason) const {
  for (std::size_t i = 0; i < used_; ++i) {
    if (holds(records_[i]->path, path) && holds(records_[i]->reason, reason)) return records_[i];
  }
  return nullptr;
}

void ReportScope::count(const char* path, const char* reason) {
  if (!is_ours()) return;
  if (last_ == nullptr || !holds(last_->path, path) || !holds(last_->reason, reason)) {
    last_ = find(path, reason);
    if (last_ == nullptr && used_ < kMostRecords) {
      CallRecord record = blank_;
      wire::put_text(record.path, path);
      wire::put_text(record.reason, reason);
      last_ = file_.take(record);
      if (last_ != nullptr) records_[used_++] = last_;
    }
  }
  if (last_ != nullptr) add_calls(*last_, 1);
}

}  // namespace cepheus::mcast
