#include "switch-emulator/engine/counters.h"

#include <array>

namespace cepheus::fabric {

std::string Counters::imbalance(std::uint64_t held) const {
  std::array<std::uint64_t, static_cast<std::size_t>(Part::kOut) + 1> sums{};
  for (std::size_t c = 0; c < static_cast<std::size_t>(Counter::kCount); ++c) {
    const auto counter = static_cast<Counter>(c);
    sums[static_cast<std::size_t>(part(counter))] += (*this)[counter];
  }
  const auto sum = [&](Part part) { return sums[static_cast<std::size_t>(part)]; };
  const auto differ = [](const char* what, std::uint64_t a, std::uint64_t b) {
    return std::string(what) + ": " + std::to_string(a) + " against " + std::to_string(b);
  };
  const std::uint64_t in = sum(Part::kIn) + sum(Part::kAgain);
  const std::uint64_t fates = sum(Part::kFate) + sum(Part::kSentOn);
  if (in != fates) return differ("frames in, and their fates", in, fates);
  const std::uint64_t ever_held = (*this)[Counter::kGateHeld];
  const std::uint64_t accounted =
      (*this)[Counter::kGateLetThrough] + (*this)[Counter::kGateEmptied] + held;
  if (ever_held != accounted) {
    return differ("frames held, and their fates", ever_held, accounted);
  }
  const std::uint64_t made = sum(Part::kCopy) + sum(Part::kSentOn);
  const std::uint64_t gone = sum(Part::kOut) + sum(Part::kLostCopy);
  return made == gone ? "" : differ("copies made, and sent or dropped", made, gone);
}

}  // namespace cepheus::fabric
