// A report is written under a hidden name, locked, and renamed. At its end a smaller file replaces
// it, because threads that still count have the old pages mapped.
//
// clear(): one process at a time, unless the other one has held the lock for kMakingTakes. It
// removes hidden files of dead processes, then reports older than kKept, then the oldest ended ones
// beyond the limit. A dead process's report counts as ended when clear() first finds it, an hour
// after its last change.
#include "support/reports/report_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>

#include "wire/whole_io.h"
#include "wire/write_signals.h"

namespace cepheus::reports {

std::string new_name(std::string_view suffix) {
  unsigned long long random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) {
    random = static_cast<unsigned long long>(
        std::chrono::system_clock::now().time_since_epoch().count());
  }
  char text[48];
  std::snprintf(text, sizeof text, "%d-%016llx", static_cast<int>(getpid()), random);
  return text + std::string(suffix);
}

namespace {

using std::chrono::nanoseconds;
using wire::UniqueFd;

constexpr std::string_view kSuffix = ".calls";
// Locked by the process that clears; empty, so it takes no memory of /dev/shm.
constexpr char kClearing[] = ".clearing";
constexpr int kMostNames = 16;  // of the default directory
constexpr char kRemedy[] = "; set CEPHEUS_REPORT_DIR to another directory";

tl::unexpected<wire::Error> fail_errno_with_remedy(const std::string& what) {
  return wire::unavailable(what + ": " + std::strerror(errno) + kRemedy);
}

std::string hidden(const std::string& name) { return "." + name; }

nanoseconds now_of_files() { return std::chrono::system_clock::now().time_since_epoch(); }

nanoseconds changed_at(const struct stat& file) {
  return std::chrono::seconds(file.st_mtim.tv_sec) + nanoseconds(file.st_mtim.tv_nsec);
}

void sort_by_age(std::vector<ReportDirectory::Entry>& entries) {
  std::ranges::sort(entries, {}, &ReportDirectory::Entry::changed);
}

// posix_fallocate returns its error; a mapped page that the file system can't back would be a
// SIGBUS.
bool reserve(int fd, std::size_t bytes) {
  const wire::WithoutWriteSignals quiet;
  errno = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  return errno == 0;
}

// True if the report's process died without ending it; the report counts as ended from now on.
bool end_for_the_dead(int report) {
  ReportHeader header;
  if (pread(report, &header, sizeof header, 0) != sizeof header || header.magic != kReportMagic ||
      header.version != kReportVersion || header.ended != 0) {
    return false;
  }
  header.ended = 1;
  return pwrite(report, &header, sizeof header, 0) == sizeof header;
}

}  // namespace

std::string default_directory() {
  const char* chosen = std::getenv("CEPHEUS_REPORT_DIR");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return first_not_taken("/dev/shm/cepheus-" + std::to_string(getuid()));
}

std::string first_not_taken(const std::string& path) {
  const auto is_anothers = [](const std::string& name) {
    struct stat there {};
    return lstat(name.c_str(), &there) == 0 && there.st_uid != geteuid();
  };
  std::string name = path;
  for (int n = 1; n < kMostNames && is_anothers(name); ++n) name = path + "." + std::to_string(n);
  return name;
}

wire::Result<ReportDirectory> ReportDirectory::open(const std::string& path) {
  ReportDirectory directory(path);
  directory.fd_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat there {};
  if (!directory.fd_.is_open() || fstat(directory.fd_.get(), &there) != 0) {
    return wire::call_failed(path);
  }
  directory.owner_ = there.st_uid;
  return directory;
}

wire::Result<ReportDirectory> ReportDirectory::make(const std::string& path, SpaceProbe space) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno_with_remedy("can't make " + path);
  auto directory = open(path);
  if (!directory || !directory->is_ours()) {
    return wire::unavailable(path + " is not a directory of this user" + kRemedy);
  }
  directory->space_ = std::move(space);
  return directory;
}

bool ReportDirectory::is_ours() const { return owner_ == geteuid(); }

std::vector<ReportDirectory::Entry> ReportDirectory::list() const { return files(false); }

std::vector<ReportDirectory::Entry> ReportDirectory::files(bool are_hidden) const {
  std::vector<Entry> found;
  // A separate descriptor, because the position in the directory is this listing's.
  const int fd = openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd < 0 ? nullptr : fdopendir(fd), closedir);
  if (listing == nullptr) return found;
  while (const dirent* entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(kSuffix) || name.starts_with('.') != are_hidden) continue;
    struct stat file {};
    if (fstatat(fd, entry->d_name, &file, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(file.st_mode) || file.st_uid != owner_) continue;
    found.push_back(
        {std::string(name), changed_at(file), static_cast<std::uint64_t>(file.st_blocks) * 512});
  }
  sort_by_age(found);
  return found;
}

UniqueFd ReportDirectory::open_report(const std::string& name, int flags) const {
  return UniqueFd(
      openat(fd_.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
}

// A shared lock: otherwise two simultaneous readers would take each other for the writer.
bool ReportDirectory::is_held(int report) {
  return flock(report, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

wire::Result<void> ReportDirectory::check_space(std::uint64_t bytes) const {
  const FreeSpace space = space_(fd_.get());
  if (space.allows(bytes)) return {};
  return wire::unavailable("too little space for reports in " + path_ + ": " + space.text() +
                           ", which other programs keep; free some" + kRemedy);
}

wire::Result<UniqueFd> ReportDirectory::write_hidden(const std::string& name,
                                                     std::span<const std::uint8_t> bytes,
                                                     std::size_t size) const {
  const std::string path = hidden(name);
  UniqueFd file(
      openat(fd_.get(), path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return fail_errno_with_remedy("can't create a report in " + path_);
  if (reserve(file.get(), size) && wire::write_whole(file.get(), bytes, 0) == 0) return file;
  auto failure = fail_errno_with_remedy("can't write a report in " + path_);
  unlinkat(fd_.get(), path.c_str(), 0);
  return failure;
}

wire::Result<ReportDirectory::Own> ReportDirectory::create(const ReportHeader& header) const {
  if (auto space = check_space(kReportStep); !space) return tl::unexpected(space.error());
  const std::string name = new_name(kSuffix);
  auto file = write_hidden(name, CallReport{header, {}}.bytes(), kReportStep);
  if (!file) return tl::unexpected(file.error());
  if (flock(file->get(), LOCK_EX | LOCK_NB) == 0 &&
      renameat(fd_.get(), hidden(name).c_str(), fd_.get(), name.c_str()) == 0) {
    return Own{name, std::move(*file)};
  }
  auto failure = fail_errno_with_remedy("can't lock a report in " + path_);
  unlinkat(fd_.get(), hidden(name).c_str(), 0);
  return failure;
}

wire::Result<void> ReportDirectory::grow(const Own& report, std::size_t bytes) const {
  const FreeSpace space = space_(fd_.get());
  if (bytes > space.limit_of_one()) {
    return wire::unavailable("the report has the size it may have");
  }
  if (auto enough = check_space(kReportStep); !enough) return enough;
  if (!reserve(report.file.get(), bytes))
    return fail_errno_with_remedy("can't extend a report in " + path_);
  return {};
}

std::optional<CallReport> ReportDirectory::read(int report) {
  std::vector<std::uint8_t> bytes(kMostReportBytes);
  bytes.resize(wire::read_whole(report, bytes, 0));
  return CallReport::parse(bytes);
}

void ReportDirectory::end(Own& report) const {
  if (auto last = read(report.file.get())) {
    last->header.ended = 1;
    const std::vector<std::uint8_t> bytes = last->bytes();
    struct stat now {};
    const bool shrinks = fstat(report.file.get(), &now) == 0 &&
                         bytes.size() + kReportStep <= static_cast<std::size_t>(now.st_size);
    // A new file, not a truncated one: threads that still count must not lose mapped pages.
    if (!shrinks || !replace(report.name, bytes)) {
      (void)wire::write_whole(report.file.get(), std::span(bytes).first(sizeof(ReportHeader)), 0);
    }
  }
  // Explicitly: a child of this process may hold the descriptor, too.
  flock(report.file.get(), LOCK_UN);
  report.file.reset();
}

bool ReportDirectory::replace(const std::string& name, std::span<const std::uint8_t> bytes) const {
  if (!write_hidden(name, bytes, bytes.size())) return false;
  if (renameat(fd_.get(), hidden(name).c_str(), fd_.get(), name.c_str()) == 0) return true;
  unlinkat(fd_.get(), hidden(name).c_str(), 0);
  return false;
}

void ReportDirectory::clear() const {
  if (!is_ours()) return;
  const UniqueFd turn(
      openat(fd_.get(), kClearing, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (turn.is_open() && flock(turn.get(), LOCK_EX | LOCK_NB) != 0) {
    struct stat held {};
    const bool is_known = fstat(turn.get(), &held) == 0;
    if (is_known && changed_at(held) + kMakingTakes >= now_of_files()) return;
    // The other process was stopped. Two processes may clear at once.
  }
  (void)futimens(turn.get(), nullptr);
  const nanoseconds now = now_of_files();
  clear_hidden(now);
  std::vector<Entry> reports = list();
  clear_old(reports, now);
  clear_beyond_limit(reports);
  flock(turn.get(), LOCK_UN);  // a child of this process may hold the descriptor, too
}

// Removes unfinished reports of processes that died.
void ReportDirectory::clear_hidden(nanoseconds now) const {
  for (const Entry& entry : files(true)) {
    if (entry.changed + kMakingTakes >= now) break;
    const UniqueFd file = open_report(entry.name, O_RDONLY);
    if (file.is_open() && !is_held(file.get())) unlinkat(fd_.get(), entry.name.c_str(), 0);
  }
}

void ReportDirectory::clear_old(std::vector<Entry>& reports, nanoseconds now) const {
  std::vector<Entry> kept;
  for (Entry& entry : reports) {
    const bool is_old = entry.changed + kKept < now;
    const UniqueFd file = is_old ? open_report(entry.name, O_RDWR) : UniqueFd();
    if (file.is_open() && !is_held(file.get())) {
      // The time of death is unknown, because the last change may be the beginning: the hour starts now.
      struct stat now_found {};
      const bool is_found_again =
          fstat(file.get(), &now_found) == 0 && changed_at(now_found) != entry.changed;
      if (!is_found_again && !end_for_the_dead(file.get())) {
        unlinkat(fd_.get(), entry.name.c_str(), 0);
        continue;
      }
      entry.changed = now;
    }
    kept.push_back(std::move(entry));
  }
  sort_by_age(kept);
  reports = std::move(kept);
}

void ReportDirectory::clear_beyond_limit(const std::vector<Entry>& reports) const {
  const std::uint64_t limit = space_(fd_.get()).limit_of_ended();
  const auto is_within = [limit](std::span<const Entry> some) {
    const auto add = [](std::uint64_t sum, const Entry& entry) { return sum + entry.bytes; };
    return some.size() <= kMostEnded &&
           std::accumulate(some.begin(), some.end(), std::uint64_t{0}, add) <= limit;
  };
  if (is_within(reports)) return;
  // Reports of running processes stay, and don't count.
  std::vector<Entry> ended;
  std::ranges::copy_if(reports, std::back_inserter(ended), [this](const Entry& entry) {
    const UniqueFd file = open_report(entry.name, O_RDONLY);
    return file.is_open() && !is_held(file.get());
  });
  for (std::span<const Entry> left = ended; !is_within(left); left = left.subspan(1)) {
    unlinkat(fd_.get(), left.front().name.c_str(), 0);
  }
}

}  // namespace cepheus::reports
