// A ring's whole space is reserved when it is made, so no page of the mapping can fail. A call is
// written between two stores of its number: 0 before, its own after. A reader that finds a newer
// number counts the call as lost.
//
// take() stops at a call that is still being written. Rings whose lock is free belong to dead
// processes, and clear_rings() removes them. Files of other users, links and short files are
// refused. Beyond kMostTexts texts calls have none.
#include "support/reports/recorded_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>

#include "support/reports/call_report.h"
#include "support/reports/free_space.h"
#include "support/reports/report_directory.h"
#include "wire/write_signals.h"

namespace cepheus::reports {
namespace {

using wire::UniqueFd;

constexpr const char* kLease = "/recording.lease";
constexpr const char* kRingSuffix = ".ring";
constexpr std::size_t kLeaseBytes = 64;

// A regular file of this user with the full length, so that the whole mapping is backed.
bool is_usable(int fd, std::size_t bytes) {
  struct stat file {};
  return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
         static_cast<std::size_t>(file.st_size) >= bytes;
}

wire::Result<std::unique_ptr<SharedFile>> map(UniqueFd file, std::size_t bytes, int protection) {
  if (!is_usable(file.get(), bytes)) {
    return wire::unavailable("not a recording's file of this user");
  }
  void* const memory = mmap(nullptr, bytes, protection, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return wire::call_failed("can't map a recording's file");
  return std::make_unique<SharedFile>(memory, bytes, std::move(file));
}

bool is_locked(int fd) { return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

}  // namespace

SharedFile::~SharedFile() { munmap(memory_, bytes_); }

// The first process creates it; zeros are an ended lease.
wire::Result<RecordingLease> RecordingLease::open(const std::string& directory) {
  const std::string path = directory + kLease;
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file.is_open()) return wire::call_failed("can't open " + path);
  const wire::WithoutWriteSignals quiet;
  if (!is_usable(file.get(), 0) ||
      (errno = posix_fallocate(file.get(), 0, static_cast<off_t>(kLeaseBytes))) != 0) {
    return wire::call_failed("can't use " + path);
  }
  auto mapped = map(std::move(file), kLeaseBytes, PROT_READ | PROT_WRITE);
  if (!mapped) return tl::unexpected(mapped.error());
  return RecordingLease(std::move(*mapped));
}

wire::Result<std::unique_ptr<CallRing>> CallRing::create(const std::string& directory,
                                                         const std::string& program,
                                                         const std::string& job) {
  // Under a hidden name until it is locked: clear_rings() removes rings without an owner.
  const std::string name = new_name(kRingSuffix);
  const std::string path = directory + "/" + name, hidden = directory + "/." + name;
  UniqueFd file(::open(hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return wire::call_failed("can't make " + path);
  const wire::WithoutWriteSignals quiet;
  const bool has_space = FreeSpace::of(file.get()).allows(sizeof(Ring));
  if (!has_space || posix_fallocate(file.get(), 0, sizeof(Ring)) != 0 ||
      flock(file.get(), LOCK_EX | LOCK_NB) != 0 || ::link(hidden.c_str(), path.c_str()) != 0) {
    ::unlink(hidden.c_str());
    return wire::unavailable("too little space for recorded calls in " + directory);
  }
  ::unlink(hidden.c_str());
  auto mapped = map(std::move(file), sizeof(Ring), PROT_READ | PROT_WRITE);
  if (!mapped) {
    ::unlink(path.c_str());
    return tl::unexpected(mapped.error());
  }
  std::unique_ptr<CallRing> ring(new CallRing(path, std::move(*mapped)));
  auto* const header = new (&ring->ring().header) RingHeader;
  header->pid = static_cast<std::uint32_t>(getpid());
  put_text(header->program, program);
  put_text(header->job, job);
  return ring;
}

void CallRing::remove() const { ::unlink(path_.c_str()); }

std::uint32_t CallRing::number_of(const CallText& text) {
  const std::lock_guard lock(texts_mutex_);
  Ring& all = ring();
  const std::uint32_t used = all.header.texts.load(std::memory_order_relaxed);
  const auto* const begin = all.texts.data();
  const auto number = static_cast<std::uint32_t>(std::find(begin, begin + used, text) - begin);
  if (number < used || used == kMostTexts) return number;
  all.texts[used] = text;
  all.header.texts.store(used + 1, std::memory_order_release);
  return used;
}

void CallRing::add(const CallText& text, std::int64_t begin_ns, std::int64_t end_ns,
                   std::uint64_t bytes, std::uint32_t root) {
  const std::uint32_t known = number_of(text);
  const std::uint64_t number = ring().header.calls.fetch_add(1, std::memory_order_relaxed);
  RingCall& call = ring().calls[number % kMostCalls];
  call.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  call.begin_ns = begin_ns;
  call.end_ns = end_ns;
  call.bytes = bytes;
  call.root = root;
  call.text = known;
  call.number.store(number + 1, std::memory_order_release);
}

std::optional<CallRingReader> CallRingReader::open(const std::string& path) {
  auto mapped = map(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)),
                    sizeof(Ring), PROT_READ);
  if (!mapped) return std::nullopt;
  CallRingReader reader(std::move(*mapped));
  const RingHeader& header = reader.ring().header;
  if (header.magic != RingHeader::kMagic || header.version != RingHeader().version) {
    return std::nullopt;
  }
  return reader;
}

std::string CallRingReader::program() const { return get_text(ring().header.program); }

bool CallRingReader::is_abandoned() const { return !is_locked(file_->fd()); }

// A call that is still being written is read next time, unless newer ones follow it.
std::vector<CallRingReader::Call> CallRingReader::take() {
  std::vector<Call> taken;
  const std::uint64_t end = ring().header.calls.load(std::memory_order_acquire);
  if (end > next_ + kMostCalls) {
    lost_ += end - kMostCalls - next_;
    next_ = end - kMostCalls;
  }
  for (; next_ < end; ++next_) {
    const RingCall& call = ring().calls[next_ % kMostCalls];
    const std::uint64_t number = call.number.load(std::memory_order_acquire);
    if (number < next_ + 1) break;
    Call copy{call.begin_ns, call.end_ns, call.bytes, call.root, {}};
    const std::uint32_t text = call.text;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (number != next_ + 1 || call.number.load(std::memory_order_relaxed) != number) {
      ++lost_;
      continue;
    }
    if (text <
        std::min<std::size_t>(kMostTexts, ring().header.texts.load(std::memory_order_acquire)))
      copy.text = ring().texts[text];
    taken.push_back(copy);
  }
  return taken;
}

std::vector<std::string> find_rings(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(kRingSuffix) && !name.starts_with('.')) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void clear_rings(const std::string& directory) {
  for (const std::string& path : find_rings(directory)) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.is_open() && is_usable(file.get(), 0) && !is_locked(file.get())) {
      ::unlink(path.c_str());
    }
  }
}

}  // namespace cepheus::reports
