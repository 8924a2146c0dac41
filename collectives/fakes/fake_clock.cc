#include "collectives/fakes/fake_clock.h"

namespace cepheus::coll {

Clock::time_point& fake::now() {
  static Clock::time_point time{};
  return time;
}

Clock::time_point Clock::now() { return fake::now(); }

}  // namespace cepheus::coll
