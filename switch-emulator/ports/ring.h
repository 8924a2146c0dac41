// A single-producer single-consumer ring in memory shared with a process that may be broken or
// hostile.
//
//   entries   capacity of them, a power of two; entry number i is at i mod capacity
//   indices   free-running 32-bit counts of produced and consumed entries, circular; those of one
//             ring are at most `capacity` apart, far below 2^31
//
// Each side owns one index and keeps its true value in private memory: the shared word is written,
// never read back. The other side's index is accepted only while it is in the range of an honest
// peer; the first value outside stops the ring for good (is_corrupt). Producing and consuming are
// batched: nothing is visible to the other side before publish() or release(). Thread-compatible on
// each side.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cepheus::fabric {

using SharedIndex = std::atomic<std::uint32_t>;
static_assert(SharedIndex::is_always_lock_free && sizeof(SharedIndex) == 4);

// One end's view of a ring; all pointers into shared memory.
template <typename Entry>
struct RingView {
  SharedIndex* produced = nullptr;
  SharedIndex* consumed = nullptr;
  Entry* entries = nullptr;
  std::uint32_t capacity = 0;  // power of two
};

template <typename Entry>
class RingProducer {
  static_assert(std::is_trivially_copyable_v<Entry>);

 public:
  RingProducer() = default;
  // Of a ring in which `start` entries were produced and consumed before: both shared indices.
  explicit RingProducer(const RingView<Entry>& view, std::uint32_t start = 0)
      : ring_(view), mask_(view.capacity - 1), next_(start), published_(start), consumed_(start) {}

  // Entries that may be put before the consumer has to move; reads the shared index only if
  // necessary.
  std::uint32_t free_entries() {
    if (next_ - consumed_ == ring_.capacity) refresh();
    return corrupt_ ? 0 : ring_.capacity - (next_ - consumed_);
  }
  // Number of all entries that the consumer has given back.
  std::uint32_t consumed() {
    refresh();
    return consumed_;
  }
  std::uint32_t produced() const { return next_; }

  // The next entry, to be filled in place, then advance(). Precondition: free_entries() > 0.
  Entry& next() { return ring_.entries[next_ & mask_]; }
  void advance() { ++next_; }
  bool has_unpublished() const { return next_ != published_; }
  void publish() {
    published_ = next_;
    ring_.produced->store(next_, std::memory_order_release);
  }
  bool is_corrupt() const { return corrupt_; }

 private:
  void refresh() {
    const std::uint32_t value = ring_.consumed->load(std::memory_order_acquire);
    // Valid range: from the consumer's last index to the published one.
    if (value - consumed_ > published_ - consumed_) {
      corrupt_ = true;
    } else {
      consumed_ = value;
    }
  }

  RingView<Entry> ring_;
  std::uint32_t mask_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t published_ = 0;
  std::uint32_t consumed_ = 0;
  bool corrupt_ = false;
};

template <typename Entry>
class RingConsumer {
  static_assert(std::is_trivially_copyable_v<Entry>);

 public:
  RingConsumer() = default;
  // As RingProducer.
  explicit RingConsumer(const RingView<Entry>& view, std::uint32_t start = 0)
      : ring_(view), mask_(view.capacity - 1), next_(start), released_(start), produced_(start) {}

  // Entries that can be taken; reads the shared index only if none is known.
  std::uint32_t available() {
    if (next_ == produced_) refresh();
    return corrupt_ ? 0 : produced_ - next_;
  }
  // Copies the next entry out, so that checked values can't change any more. Precondition:
  // available() > 0.
  void take(Entry& entry) {
    entry = ring_.entries[next_ & mask_];
    ++next_;
  }
  void prefetch(std::uint32_t ahead) const {
    const auto* entry = reinterpret_cast<const char*>(&ring_.entries[(next_ + ahead) & mask_]);
    for (std::size_t line = 0; line < sizeof(Entry); line += 64) __builtin_prefetch(entry + line);
  }
  bool has_unreleased() const { return next_ != released_; }
  // Gives every entry taken so far back to the producer.
  void release() {
    released_ = next_;
    ring_.consumed->store(next_, std::memory_order_release);
  }
  bool is_corrupt() const { return corrupt_; }

 private:
  void refresh() {
    const std::uint32_t value = ring_.produced->load(std::memory_order_acquire);
    // Valid range: from the producer's last index to the last free entry.
    if (value - produced_ > ring_.capacity - (produced_ - released_)) {
      corrupt_ = true;
    } else {
      produced_ = value;
    }
  }

  RingView<Entry> ring_;
  std::uint32_t mask_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t released_ = 0;
  std::uint32_t produced_ = 0;
  bool corrupt_ = false;
};

}  // namespace cepheus::fabric
