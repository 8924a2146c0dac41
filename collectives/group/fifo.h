// First in, first out, in memory that is kept: once the queue has been as long as it gets, nothing is
// allocated any more (a std::deque allocates as elements pass through it).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace cepheus::coll {

template <typename T>
class Fifo {
 public:
  bool is_empty() const { return count_ == 0; }
  T& front() { return ring_[first_]; }
  const T& front() const { return ring_[first_]; }
  void push(T value) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = std::move(value);
  }
  // Precondition of this, and of front(): not empty.
  T pop() {
    T value = std::move(ring_[first_]);
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
    return value;
  }
  template <typename F>
  void each(F f) {
    for (std::size_t i = 0; i < count_; ++i) f(ring_[(first_ + i) & (ring_.size() - 1)]);
  }

 private:
  static constexpr std::size_t kFewest = 16;  // a power of two, as all sizes are

  void grow() {
    std::vector<T> larger(ring_.empty() ? kFewest : 2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i)
      larger[i] = std::move(ring_[(first_ + i) & (ring_.size() - 1)]);
    ring_.swap(larger);
    first_ = 0;
  }

  std::vector<T> ring_;
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace cepheus::coll
