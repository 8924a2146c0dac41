// First in, first out, in a ring that grows to the largest size it ever had. It allocates nothing
// after that.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace cepheus::wire {

template <typename Item>
class Fifo {
 public:
  bool is_empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }

  void push(const Item& item) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = item;
  }
  // Preconditions: !is_empty().
  const Item& front() const { return ring_[first_]; }
  Item& back() { return ring_[(first_ + count_ - 1) & (ring_.size() - 1)]; }
  void pop() {
    assert(count_ > 0);
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
  }

 private:
  void grow() {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(first_), ring_.end());
    ring_.resize(std::max<std::size_t>(8, 2 * ring_.size()));
    first_ = 0;
  }

  std::vector<Item> ring_;  // its size is a power of two
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace cepheus::wire
