#include "collectives/core/comparison.h"

namespace cepheus::coll {

std::string to_text(const SizeClass& sizes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const std::string most = std::to_string(1u << sizes.exponent % 10u) + " ";
  return (sizes.blocking ? "up to " : "ibcast up to ") + most + kUnits[sizes.exponent / 10u];
}

void Comparison::follow(const Plan& plan) {
  plan_ = plan;
  at_ = 0;
  if (!plan.goes_on) own_ = samples_ = {};
}

Comparison::Turn Comparison::next() {
  const std::uint32_t at = at_++;
  if (at >= plan_.own) return {other(plan_.way), true, at > plan_.own};
  return {plan_.way, false, (at > 0 || plan_.goes_on) && at + kWindow >= plan_.own};
}

std::int64_t Comparison::Tally::mean() const {
  if (is_void) return Times::kVoid;
  if (count < 2) return sum.count();
  return std::max<std::int64_t>(1, (sum - longest).count() / (count - 1));
}

}  // namespace cepheus::coll
