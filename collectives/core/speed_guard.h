// Notices that large broadcasts have become much slower than they used to be: the fabric works, but
// loses or delays so much that the host's own algorithms may do better. Pure.
//
// Per size class (powers of two of the bytes): the first kWarmUp broadcasts of a class give its
// usual throughput, their median; later ones that are not slow move its logarithm by 1/16. A
// broadcast at less than half of the usual is slow: it adds one to the class's score, any other
// takes two away, not below zero. A score of kSlowScore means slow. So kSlowScore slow ones in a
// row are enough, while noise that makes fewer than two thirds of them slow has to be lucky: the
// odds against it grow by a factor of 1.6 with each step even if every second broadcast is slow
// (2.2 at 40 %), which makes 1 : 100,000 (1 : 150 million) for a whole climb.
//
// Hysteresis: after it has said so it knows nothing, and learns anew; what is then usual is usual.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cepheus::coll {

class SpeedGuard {
 public:
  static constexpr int kWarmUp = 15;
  static constexpr int kSlowScore = 24;
  // Smaller ones are governed by how promptly processes run, not by the fabric.
  static constexpr std::size_t kSmallest = std::size_t{64} << 10;

  // A broadcast of `bytes` took the fabric `time`. True: it is slow now.
  bool note(std::size_t bytes, std::chrono::nanoseconds time);
  // Bytes per second that are usual for messages of that size; 0: not known yet.
  double usual(std::size_t bytes) const;
  void forget() { classes_ = {}; }

 private:
  struct Class {
    std::array<double, kWarmUp> first{};
    int known = 0;
    double usual = 0;
    int score = 0;
  };
  static constexpr std::size_t kClasses = 64;

  std::array<Class, kClasses> classes_{};
};

}  // namespace cepheus::coll
