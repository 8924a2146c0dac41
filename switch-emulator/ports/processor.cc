#include "switch-emulator/ports/processor.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "wire/clock.h"

namespace cepheus::fabric {
namespace {

constexpr wire::Duration kLeast = std::chrono::microseconds(5);
constexpr wire::Duration kMost = std::chrono::microseconds(60);

// The lower quartile of some sleeps: longer ones had to wait for a core.
wire::Duration measure() {
  constexpr timespec kSleep{0, 200'000};
  const FineTimers fine_timers;
  std::array<wire::Duration, 9> late{};
  for (wire::Duration& each : late) {
    const wire::Instant began = wire::monotonic_now();
    ::nanosleep(&kSleep, nullptr);
    each = wire::monotonic_now() - began - std::chrono::nanoseconds(kSleep.tv_nsec);
  }
  const auto quartile = late.begin() + late.size() / 4;
  std::nth_element(late.begin(), quartile, late.end());
  return std::clamp(*quartile, kLeast, kMost);
}

}  // namespace

FineTimers::FineTimers() : before_(::prctl(PR_GET_TIMERSLACK)) {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
}

FineTimers::~FineTimers() {
  ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(std::max(before_, 0)));
}

void offer_core(WaitPolicy& policy) {
  const wire::Instant began = wire::monotonic_now();
  ::sched_yield();
  policy.yielded(began, wire::monotonic_now());
}

wire::Duration cost_of_sleeping() {
  static const wire::Duration cost = measure();
  return cost;
}

}  // namespace cepheus::fabric
