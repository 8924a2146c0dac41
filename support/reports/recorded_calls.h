// The last collective calls of a process with their times, for `cepheusctl record`. Processes write
// them only while a recording runs.
//
// The lease is a small file beside a user's reports (report_directory.h): the time until which calls
// are recorded. Processes map it and read it at each call. A recorder extends it repeatedly, so the
// lease of a dead recorder ends. A process under a valid lease writes its calls into a ring in a file
// of its own:
//
//   0                RingHeader
//   256              CallText    x kMostTexts: communicator, path and reason
//   then             RingCall    x kMostCalls: call number n lies at n % kMostCalls
//
// Readers remove nothing: they remember the last number they read, and detect overwritten calls.
// `number` is stored last, with release. Native byte order. Times are CLOCK_MONOTONIC's: comparable
// within a machine, not between two.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::reports {

// A file's first bytes as shared memory.
class SharedFile {
 public:
  SharedFile(void* memory, std::size_t bytes, wire::UniqueFd file)
      : memory_(memory), bytes_(bytes), file_(std::move(file)) {}
  ~SharedFile();
  void* memory() const { return memory_; }
  int fd() const { return file_.get(); }

 private:
  void* const memory_;
  const std::size_t bytes_;
  wire::UniqueFd file_;
};

class RecordingLease {
 public:
  // Of the reports in `directory`, which exists; creates a missing lease. Fails if its file is not
  // this user's.
  static wire::Result<RecordingLease> open(const std::string& directory);

  // 0 if no recording runs, which costs one load.
  bool may_be_on() const { return until().load(std::memory_order_relaxed) != 0; }
  bool is_on(std::int64_t now_ns) const { return until().load(std::memory_order_relaxed) > now_ns; }
  void extend(std::int64_t until_ns) { until().store(until_ns, std::memory_order_relaxed); }
  void end() { extend(0); }

 private:
  explicit RecordingLease(std::shared_ptr<SharedFile> file) : file_(std::move(file)) {}
  std::atomic<std::int64_t>& until() const {
    return *static_cast<std::atomic<std::int64_t>*>(file_->memory());
  }
  std::shared_ptr<SharedFile> file_;
};

struct RingHeader {
  static constexpr std::uint32_t kMagic = 0x43455052;
  std::uint32_t magic = kMagic;
  std::uint32_t version = 1;
  std::uint32_t pid = 0;
  std::atomic<std::uint32_t> texts = 0;    // in use
  std::atomic<std::uint64_t> calls = 0;    // number of calls begun so far
  std::atomic<std::uint32_t> address = 0;  // IPv4 of its NIC; 0: none opened
  std::array<char, 100> program{};
  std::array<char, 128> job{};
};
static_assert(sizeof(RingHeader) == 256);

struct CallText {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::array<char, 56> communicator{};
  std::array<char, 24> path{};
  std::array<char, 152> reason{};
  friend bool operator==(const CallText&, const CallText&) = default;
};
static_assert(sizeof(CallText) == 240);

struct RingCall {
  std::atomic<std::uint64_t> number = 0;  // + 1; 0: nothing yet, or being written
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t root = 0;
  std::uint32_t text = 0;  // kMostTexts: the texts were full
};
static_assert(sizeof(RingCall) == 40);

inline constexpr std::size_t kMostTexts = 64;
inline constexpr std::size_t kMostCalls = 4096;
struct Ring {
  RingHeader header;
  std::array<CallText, kMostTexts> texts;
  std::array<RingCall, kMostCalls> calls;
};

// Of this process. Any thread.
class CallRing {
 public:
  // Creates a locked file. kUnavailable: too little free space.
  static wire::Result<std::unique_ptr<CallRing>> create(const std::string& directory,
                                                        const std::string& program,
                                                        const std::string& job);
  void add(const CallText& text, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t bytes,
           std::uint32_t root);
  void set_address(std::uint32_t address) {
    ring().header.address.store(address, std::memory_order_relaxed);
  }
  // Discards the ring: it has no reader.
  void remove() const;

 private:
  CallRing(std::string path, std::unique_ptr<SharedFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Ring& ring() const { return *static_cast<Ring*>(file_->memory()); }
  std::uint32_t number_of(const CallText& text);

  const std::string path_;
  std::unique_ptr<SharedFile> file_;
  std::mutex texts_mutex_;
};

// A ring that another process writes.
class CallRingReader {
 public:
  struct Call {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t bytes = 0;
    std::uint32_t root = 0;
    CallText text;
  };

  // Empty: no ring, or another version's.
  static std::optional<CallRingReader> open(const std::string& path);
  std::uint32_t pid() const { return ring().header.pid; }
  std::string program() const;
  std::uint32_t address() const { return ring().header.address.load(std::memory_order_relaxed); }
  // Its process has ended.
  bool is_abandoned() const;
  // The calls since the last read(), without overwritten ones.
  std::vector<Call> take();
  std::uint64_t lost() const { return lost_; }

 private:
  explicit CallRingReader(std::unique_ptr<SharedFile> file) : file_(std::move(file)) {}
  const Ring& ring() const { return *static_cast<const Ring*>(file_->memory()); }

  std::unique_ptr<SharedFile> file_;
  std::uint64_t next_ = 0;
  std::uint64_t lost_ = 0;
};

// Paths of all rings in `directory`, sorted.
std::vector<std::string> find_rings(const std::string& directory);
// Removes rings of ended processes.
void clear_rings(const std::string& directory);

}  // namespace cepheus::reports
