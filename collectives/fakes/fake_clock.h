// The component's clock, which a test turns.
#pragma once

#include "collectives/group/clock.h"

namespace cepheus::coll::fake {

// The result of Clock::now().
Clock::time_point& now();

}  // namespace cepheus::coll::fake
