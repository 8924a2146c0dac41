// A program's own polls, and how it waits between them (poll_rest.h).
#include <sched.h>

#include <algorithm>
#include <utility>

#include "soft-roce/verbs/live_nic.h"
#include "soft-roce/verbs/poll_rest.h"

namespace cepheus::verbs {
namespace {

thread_local PollRest polls;
thread_local const LiveNic* polled_last = nullptr;

clockid_t own_cpu_clock() {
  clockid_t clock{};
  ::pthread_getcpuclockid(::pthread_self(), &clock);
  return clock;
}

}  // namespace

void LiveNic::poll() {
  bool moved = false;
  bool in_bulk = false;
  if (std::unique_lock lock(mutex_, std::try_to_lock); lock.owns_lock()) {
    static thread_local const clockid_t clock = own_cpu_clock();
    const Instant now = wire::monotonic_now();
    poller_clock_ = clock;
    drive_.polled(now);
    moved = progress(now);
    if (moved) drive_.took_by_poll();
    if (!moved && polls.is_check_due()) check_fabric();
    // Not over a completion that the caller has not seen, nor while another NIC has news for it.
    const bool is_news = std::exchange(is_news_, false) || std::exchange(polled_last, this) != this;
    in_bulk = !moved && !is_news && engine_.bulk() != rnic::Bulk::kNone;
  }
  if (moved) {
    polls.fruitful();
  } else {
    rest(in_bulk);
  }
}

void LiveNic::rest(bool in_bulk) {
  using WaitFor = fabric::HostPort::WaitFor;
  const PollRest::Step step = polls.fruitless(in_bulk);
  if (step == PollRest::Step::kPollAgain) return;
  if (step == PollRest::Step::kNap && nap(WaitFor::kFrame)) return;
  if (step == PollRest::Step::kNapForBatch && nap(WaitFor::kBatch)) return;
  const Instant began = wire::monotonic_now();
  ::sched_yield();
  polls.yielded(wire::monotonic_now() - began);
}

bool LiveNic::nap(fabric::HostPort::WaitFor what) {
  Duration most = PollRest::kNap;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || !is_up() || napping_) return false;
    if (thread_on_port_) {
      // One sleeper a port: the thread sees that the program polls, and leaves it.
      if (!drive_.watches_memory()) kick();
      return false;
    }
    // Work in hand is done first, and something that has just arrived is not slept over.
    if (engine_.wants_to_transmit()) return false;
    if (engine_.bulk() == rnic::Bulk::kAmid) most = PollRest::kNapAmidMessage;
    most = std::min(most, engine_.deadline() - wire::monotonic_now());
    if (most <= Duration(0) || !port_->arm(what)) return true;
    napping_ = true;
  }
  port_->sleep(most);
  const std::scoped_lock lock(mutex_);
  napping_ = false;
  drive_.polled(wire::monotonic_now());  // as it will: the thread is not to come between
  if (!is_abandoned()) port_->withdraw();
  return true;
}

}  // namespace cepheus::verbs
