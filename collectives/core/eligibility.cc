#include "collectives/core/eligibility.h"

namespace cepheus::coll {

Eligibility eligibility_of(const CommunicatorFacts& facts, const Parameters& parameters) {
  if (parameters.chosen_mode() == Mode::kOff || facts.is_inter || facts.outlives_deaths ||
      facts.size < 2)
    return Eligibility::kNot;
  return facts.size < parameters.min_members ? Eligibility::kTooFewMembers : Eligibility::kEligible;
}

bool FirstCalls::earn(std::uint64_t bytes, const Parameters& parameters) {
  const std::uint64_t calls = ++calls_;
  const bool is_enough = parameters.sets_up_at_once() ||
                         calls > static_cast<std::uint64_t>(parameters.set_up_after) ||
                         (bytes_ += bytes) >= parameters.set_up_bytes;
  if (is_enough) earned_ = true;
  return is_enough;
}

bool LookAgain::count() {
  if (++calls_ < due_) return false;
  calls_ = 0;
  due_ = std::min(due_ * kFactor, kMost);
  return true;
}

}  // namespace cepheus::coll
