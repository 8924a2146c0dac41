// Finds the counters that have grown since the last look. So a recorder learns from an engine's
// counters which actions one call took.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cepheus::recording {

template <typename Counter, std::size_t N>
class CounterWatch {
 public:
  // `names` has one name per counter, always in this order. It outlives the watch.
  explicit CounterWatch(const std::array<Counter, N>& watched) : watched_(watched) {}

  // Calls grew(index, difference) for each grown counter. A counter that was reset begins at 0.
  template <typename Counters, typename Grew>
  void look(const Counters& counters, Grew grew) {
    for (std::size_t i = 0; i < N; ++i) {
      const std::uint64_t now = counters[watched_[i]];
      const std::uint64_t before = last_[i];
      last_[i] = now;
      if (now > before) grew(i, now - before);
    }
  }

 private:
  const std::array<Counter, N>& watched_;
  std::array<std::uint64_t, N> last_{};
};

}  // namespace cepheus::recording
