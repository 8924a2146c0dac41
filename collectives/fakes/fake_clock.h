// The component's clock, which a test turns.
#pragma once

#include "collectives/group/clock.h"

namespace cepheus::coll::fake {

// What Clock::now() answers.
Clock::time_point& now();

}  // namespace cepheus::coll::fake
