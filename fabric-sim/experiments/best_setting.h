// The setting that serves a rival best: rivals have what a careful user would give them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fabric-sim/experiments/schedule.h"

namespace cepheus::sim {

struct BestSetting {
  double us = 0;        // the shortest time
  std::string setting;  // that took it, for the row's note
};

// Microseconds that a schedule takes.
using TimeOfSchedule = std::function<double(const Schedule&)>;

// Of 1, 2, 4 and 8 large sends of a rank under way at once.
BestSetting best_at_once(Schedule schedule, const TimeOfSchedule& time_of);

// Of a chain's numbers of slices. Precondition: there is one.
BestSetting best_chain(std::size_t ranks, std::uint64_t bytes,
                       const std::vector<std::size_t>& slices, const TimeOfSchedule& time_of);

}  // namespace cepheus::sim
