#include "collectives/group/clock.h"

namespace cepheus::coll {

Clock::time_point Clock::now() { return std::chrono::steady_clock::now(); }

}  // namespace cepheus::coll
