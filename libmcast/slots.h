// Numbers 0 to n-1 that are handed out and given back: which entries of a fixed array are free.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

namespace cepheus::mcast {

class Slots {
 public:
  explicit Slots(std::uint32_t count) : free_(count) {
    for (std::uint32_t i = 0; i < count; ++i) free_[i] = count - 1 - i;  // 0 is handed out first
  }

  bool is_empty() const { return free_.empty(); }
  std::uint32_t take() {
    assert(!free_.empty());
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  // Never allocates: the vector's capacity is the count.
  void give_back(std::uint32_t slot) { free_.push_back(slot); }

 private:
  std::vector<std::uint32_t> free_;
};

}  // namespace cepheus::mcast
