// Which of some counters have grown since somebody looked last: what engines, which tell nobody what
// they do, did in one call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cepheus::recording {

template <typename Counter, std::size_t N>
class CounterWatch {
 public:
  // `names`: of as many counters, in one order everywhere. It outlives the watch.
  explicit CounterWatch(const std::array<Counter, N>& watched) : watched_(watched) {}

  // Calls grew(index, by how much) for each that did. Counters that were set back begin again.
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
