// A sleeper's request to be woken, in shared memory: who sleeps asks, who brings work rings its
// eventfd.
//
//     sleeper                                   ringer
//       flag.ask(reasons)                         publish the work
//       look once more; flag.withdraw() if        if (flag.take(reason)) write the eventfd
//         there is work; else wait
//
// Both sides use read-modify-writes on one word, which have one order: if take() comes after ask()
// it sees the request; if before, ask() synchronises with it, and the look after it sees the work.
// No wake-up is lost, and no fence is needed. A stray request costs a spurious wake-up, nothing
// else.
#pragma once

#include <atomic>
#include <cstdint>

namespace cepheus::fabric {

class WakeFlag {
 public:
  void ask(std::uint32_t reasons) { word_.exchange(reasons, std::memory_order_acq_rel); }
  void withdraw() { word_.store(0, std::memory_order_relaxed); }

  // True, once per request, if the sleeper asked for any of `reasons`; other requests stand.
  bool take(std::uint32_t reasons) {
    const std::uint32_t asked = word_.exchange(0, std::memory_order_acq_rel);
    if ((asked & reasons) != 0) return true;
    if (asked != 0) word_.fetch_or(asked, std::memory_order_acq_rel);
    return false;
  }

 private:
  std::atomic<std::uint32_t> word_;  // shared memory starts as zeros
};
static_assert(sizeof(WakeFlag) == 4);

}  // namespace cepheus::fabric
