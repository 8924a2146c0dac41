#include "fabric-sim/experiments/best_setting.h"

#include <cassert>

#include "fabric-sim/experiments/rivals.h"

namespace cepheus::sim {
namespace {

void keep_shorter(BestSetting& best, double us, const std::string& setting) {
  if (best.setting.empty() || us < best.us) best = {us, setting};
}

}  // namespace

BestSetting best_at_once(Schedule schedule, const TimeOfSchedule& time_of) {
  BestSetting best;
  for (const std::size_t at_once : {1, 2, 4, 8}) {
    schedule.at_once = at_once;
    keep_shorter(best, time_of(schedule), std::to_string(at_once) + " at once");
  }
  return best;
}

BestSetting best_chain(std::size_t ranks, std::uint64_t bytes,
                       const std::vector<std::size_t>& slices, const TimeOfSchedule& time_of) {
  assert(!slices.empty());
  BestSetting best;
  for (const std::size_t n : slices) {
    keep_shorter(best, time_of(chain(ranks, bytes, n)), std::to_string(n) + " slices");
  }
  return best;
}

}  // namespace cepheus::sim
