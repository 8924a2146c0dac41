// A record's states: free, live, closed when its communicator is freed, folded with others of its
// way and reason. The last kMostClosed closed ones keep their names. A choice is dropped instead of
// folded.
//
// A fork makes the parent's file the parent's alone: each call compares the generation of forks,
// and the child makes its own file. With a full file system, tries become rarer: at powers of two.
//
// Bounds: kMostReportBytes of file, kMostRecords ways and reasons of a communicator; calls beyond
// are counted together. The lock is taken to make, free or time records, not to count.
#include "collectives/reports/report_file.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>

#include "wire/clock.h"

namespace cepheus::coll {
namespace {

using reports::CallRecord;
using reports::RecordState;
using reports::ReportHeader;

// Grows by one in each forked child.
constinit std::atomic<std::uint64_t> forks{0};
[[maybe_unused]] const int kForksAreCounted =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

std::uint64_t fork_generation() { return forks.load(std::memory_order_relaxed); }

void store_state(CallRecord& record, RecordState state) {
  std::atomic_ref(record.state).store(state, std::memory_order_release);
}

void add_calls(std::uint64_t& calls, std::uint64_t n) {
  std::atomic_ref(calls).fetch_add(n, std::memory_order_relaxed);
}

std::uint64_t calls_of(CallRecord& record) {
  return std::atomic_ref(record.calls).load(std::memory_order_relaxed);
}

std::atomic<std::uint32_t> address_of_nic{0};

constinit std::atomic<ReportFile*> current_file{nullptr};

// Runs when the process exits or the library is unloaded.
[[maybe_unused]] const struct Ending {
  ~Ending() {
    if (ReportFile* const file = current_file.load(); file != nullptr) file->end();
  }
} kEnding;

std::int64_t monotonic_ns() { return wire::monotonic_now().time_since_epoch().count(); }

template <std::size_t N>
bool holds(const std::array<char, N>& field, const char* text) {
  return std::strncmp(field.data(), text, N) == 0;
}

std::string& hosts_job() {
  static auto& name = *new std::string;
  return name;
}

}  // namespace

ReportFile& ReportFile::instance() {
  const std::uint64_t generation = fork_generation();
  ReportFile* known = current_file.load(std::memory_order_acquire);
  while (known == nullptr || known->made_in_ != generation) {
    auto* const fresh = new ReportFile(reports::default_directory());
    fresh->parents_ = known;
    if (current_file.compare_exchange_strong(known, fresh, std::memory_order_acq_rel))
      return *fresh;
    delete fresh;  // another thread was first
  }
  return *known;
}

ReportFile::ReportFile(std::string directory, reports::SpaceProbe space)
    : made_in_(fork_generation()), path_(std::move(directory)), space_(std::move(space)) {}

ReportFile::~ReportFile() {
  end();
  if (memory_ != nullptr) munmap(memory_, reports::kMostReportBytes);
}

bool ReportFile::is_ours() const {
  return forks_.load(std::memory_order_acquire) == fork_generation();
}

ReportHeader& ReportFile::header() const { return *static_cast<ReportHeader*>(memory_); }

CallRecord* ReportFile::records() const {
  return reinterpret_cast<CallRecord*>(static_cast<char*>(memory_) + sizeof(ReportHeader));
}

wire::Result<void> ReportFile::open() {
  const std::lock_guard lock(mutex_);
  if (is_ours()) return {};
  // Each new communicator tries. If the file system is full, attempts become rarer.
  if (refusals_ != 0 && !std::has_single_bit(refusals_)) {
    ++refusals_;
    return tl::unexpected(refusal_);
  }
  auto made = make();
  if (!made) {
    ++refusals_;
    refusal_ = made.error();
  }
  return made;
}

wire::Result<void> ReportFile::make() {
  auto directory = reports::ReportDirectory::make(path_, space_);
  if (!directory) return tl::unexpected(directory.error());
  directory->clear();
  ReportHeader header;
  header.pid = static_cast<std::uint32_t>(getpid());
  reports::put_text(header.program, program_invocation_short_name);
  const char* job = std::getenv("PMIX_NAMESPACE");
  reports::put_text(header.job, job == nullptr ? hosts_job() : job);
  reports::put_text(header.device, device_);
  auto own = directory->create(header);
  if (!own) return tl::unexpected(own.error());
  // All that it may become: pages beyond the file's end are touched once it has grown.
  void* const memory = mmap(nullptr, reports::kMostReportBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                            own->file.get(), 0);
  if (memory == MAP_FAILED) {
    auto failure = wire::call_failed("can't map a report");
    directory->end(*own);
    return failure;
  }
  // The parent's mapping stays: scopes from before the fork refer to it.
  memory_ = memory;
  bytes_ = reports::kReportStep;
  ring_.reset();  // a parent's
  has_no_ring_ = false;
  // Without it this process can't be recorded. Reports don't depend on it.
  if (auto lease = reports::RecordingLease::open(path_); lease && !owned_lease_) {
    owned_lease_ = std::move(*lease);
    lease_.store(&*owned_lease_, std::memory_order_release);
  }
  directory_ = std::move(*directory);
  own_ = std::move(*own);
  next_ = 0;
  closed_.clear();
  forks_.store(fork_generation(), std::memory_order_release);
  return {};
}

void ReportFile::set_device(std::string text) {
  const std::lock_guard lock(mutex_);
  device_ = std::move(text);
  // A reader at this moment may see a part of it, once.
  if (is_ours()) reports::put_text(header().device, device_);
}

void ReportFile::end() {
  // Before the lock: in a forked child a thread that is not there may hold it.
  if (!is_ours()) return;
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return;
  forks_.store(kNobodys, std::memory_order_release);
  if (ring_ != nullptr && !owned_lease_->is_on(monotonic_ns())) ring_->remove();
  ring_.reset();
  directory_->end(own_);
  directory_->clear();
}

// The first call comes before the report exists. Making the report finds the lease.
std::int64_t ReportFile::begin_call() {
  reports::RecordingLease* lease = lease_.load(std::memory_order_acquire);
  if (lease == nullptr) {
    if (!open()) return 0;
    lease = lease_.load(std::memory_order_acquire);
    if (lease == nullptr) return 0;
  }
  if (!lease->may_be_on()) return 0;
  const std::int64_t now = monotonic_ns();
  return lease->is_on(now) ? now : 0;
}

void ReportFile::set_job(const std::string& name) { hosts_job() = name; }

void ReportFile::set_address(wire::Ipv4 address) {
  address_of_nic.store(address.value(), std::memory_order_relaxed);
}

reports::CallRing* ReportFile::ring() {
  if (ring_ == nullptr && !has_no_ring_) {
    auto made = reports::CallRing::create(path_, reports::get_text(header().program),
                                          reports::get_text(header().job));
    has_no_ring_ = !made;
    if (made) ring_ = std::move(*made);
  }
  return ring_.get();
}

void ReportFile::keep(const reports::CallText& text, std::int64_t begin_ns, std::uint64_t bytes,
                      std::uint32_t root) {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return;
  reports::CallRing* const into = ring();
  if (into == nullptr) return;
  into->set_address(address_of_nic.load(std::memory_order_relaxed));
  into->add(text, begin_ns, monotonic_ns(), bytes, root);
}

CallRecord* ReportFile::find_free() {
  const std::size_t count = reports::records_in(bytes_);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (next_ + i) % count;
    if (records()[at].state != RecordState::kFree) continue;
    next_ = (at + 1) % count;
    return &records()[at];
  }
  return nullptr;
}

bool ReportFile::grow() {
  const std::size_t bytes = bytes_ + reports::kReportStep;
  if (bytes > reports::kMostReportBytes || !directory_->grow(own_, bytes)) return false;
  next_ = reports::records_in(bytes_);
  bytes_ = bytes;
  return true;
}

CallRecord* ReportFile::take(const CallRecord& record) {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return nullptr;
  CallRecord* slot = find_free();
  if (slot == nullptr && grow()) slot = find_free();
  while (slot == nullptr && !closed_.empty()) {
    fold_oldest();
    slot = find_free();
  }
  if (slot == nullptr) return nullptr;
  CallRecord filled = record;
  filled.state = RecordState::kFree;
  std::memcpy(slot, &filled, sizeof filled);
  store_state(*slot, record.state);
  return slot;
}

void ReportFile::count_elsewhere() { add_calls(header().uncounted, 1); }

void ReportFile::retire(CallRecord& record) {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return;
  store_state(record, record.state == RecordState::kChoice ? RecordState::kClosedChoice
                                                           : RecordState::kClosed);
  closed_.push_back(&record);
  if (closed_.size() > kMostClosed) fold_oldest();
}

// Adds the calls of the communicator that was freed first to those of others that are gone, and
// frees its record; the first of its path and reason becomes the record of all that follow.
void ReportFile::fold_oldest() {
  CallRecord& record = *closed_.front();
  closed_.pop_front();
  if (record.state == RecordState::kClosedChoice) return store_state(record, RecordState::kFree);
  for (std::size_t i = 0; i < reports::records_in(bytes_); ++i) {
    CallRecord& slot = records()[i];
    if (slot.state != RecordState::kFolded || slot.path != record.path ||
        slot.reason != record.reason) {
      continue;
    }
    add_calls(slot.calls, calls_of(record));
    std::atomic_ref(slot.ranks).fetch_add(1, std::memory_order_relaxed);
    return store_state(record, RecordState::kFree);
  }
  store_state(record, RecordState::kFree);
  record.rank = 0;
  record.ranks = 1;
  reports::put_text(record.communicator, "(freed)");
  store_state(record, RecordState::kFolded);
}

ReportScope::ReportScope(ReportFile& file, const char* name, unsigned rank, unsigned ranks)
    : file_(file), forks_(fork_generation()) {
  blank_.state = RecordState::kLive;
  blank_.rank = rank;
  blank_.ranks = ranks;
  reports::put_text(blank_.communicator, name);
}

ReportScope::~ReportScope() {
  if (!is_ours()) return;
  for (std::size_t i = 0; i < used_; ++i) file_.retire(*records_[i]);
  for (reports::ChoiceRecord* const each : choices_)
    file_.retire(*reinterpret_cast<CallRecord*>(each));
}

bool ReportScope::is_ours() const { return file_.is_ours() && forks_ == fork_generation(); }

CallRecord* ReportScope::find(const char* path, const char* reason) const {
  for (std::size_t i = 0; i < used_; ++i) {
    if (holds(records_[i]->path, path) && holds(records_[i]->reason, reason)) return records_[i];
  }
  return nullptr;
}

CallRecord* ReportScope::add(const char* path, const char* reason) {
  // If the file system is full, attempts become rarer, because each costs system calls.
  if (used_ == kMostRecords || (missed_ != 0 && !std::has_single_bit(missed_))) return nullptr;
  CallRecord record = blank_;
  reports::put_text(record.path, path);
  reports::put_text(record.reason, reason);
  CallRecord* const added = file_.take(record);
  if (added != nullptr) records_[used_++] = added;
  return added;
}

void ReportScope::count(const char* path, const char* reason) {
  if (!is_ours()) return;
  if (last_ == nullptr || !holds(last_->path, path) || !holds(last_->reason, reason)) {
    last_ = find(path, reason);
    if (last_ == nullptr) last_ = add(path, reason);
  }
  if (last_ != nullptr) {
    add_calls(last_->calls, 1);
  } else {
    ++missed_;
    file_.count_elsewhere();
  }
}

reports::ChoiceRecord* ReportScope::choice_of(const char* sizes, const Ways& ways) {
  for (reports::ChoiceRecord* const each : choices_) {
    if (holds(each->sizes, sizes)) return each;
  }
  reports::ChoiceRecord record;
  record.rank = blank_.rank;
  record.ranks = blank_.ranks;
  record.communicator = blank_.communicator;
  reports::put_text(record.sizes, sizes);
  reports::put_text(record.network, ways.network);
  reports::put_text(record.other, ways.other);
  CallRecord* const taken = file_.take(std::bit_cast<CallRecord>(record));
  if (taken == nullptr) return nullptr;
  return choices_.emplace_back(reinterpret_cast<reports::ChoiceRecord*>(taken));
}

// Readers may see the numbers of two choices together, once.
void ReportScope::choose(const char* sizes, const Ways& ways, const reports::Choice& choice) {
  reports::ChoiceRecord* const record = is_ours() ? choice_of(sizes, ways) : nullptr;
  if (record != nullptr) record->choice = choice;
}

void ReportScope::keep(const char* path, const char* reason, std::int64_t begin_ns,
                       std::uint64_t bytes, std::uint32_t root) {
  if (!is_ours()) return;
  reports::CallText text;
  text.rank = blank_.rank;
  text.ranks = blank_.ranks;
  text.communicator = blank_.communicator;
  reports::put_text(text.path, path);
  reports::put_text(text.reason, reason);
  file_.keep(text, begin_ns, bytes, root);
}

}  // namespace cepheus::coll
