// A program's own polls, and its waits between them (wait_policy.h).
//
// poll() tries the lock, since another thread that has it makes the same progress. If nothing came,
// the thread yields, or sleeps on the port: only if the thread of the NIC does not, nothing waits
// to be sent, and at most until the engine's deadline. A packet that has just arrived prevents that
// sleep. Policy and last view are of each thread: a poll after news seldom sleeps.
#include <algorithm>
#include <utility>

#include "nic-emulator/verbs/device/live_nic.h"
#include "switch-emulator/ports/processor.h"

namespace cepheus::verbs {
namespace {

// A check of the fabric costs a system call.
constexpr Duration kFabricCheck = std::chrono::milliseconds(5);

// A program polls other things, too: it never sleeps only because no packet comes.
thread_local fabric::WaitPolicy policy(Duration::max());

// A thread's view of a NIC at its last poll.
struct View {
  const LiveNic* nic;
  std::uint64_t delivered;  // completions
  bool operator==(const View&) const = default;
};
thread_local View last_view{};

}  // namespace

void LiveNic::poll() {
  bool moved = false;
  bool amid_message = false;
  std::unique_lock lock(mutex_, std::try_to_lock);
  const Instant now = wire::monotonic_now();
  if (lock.owns_lock()) {
    drive_.polled(now);
    moved = progress(now) > 0;
    if (moved) drive_.program_took();
    if (!moved) check_fabric_sometimes(now);
    // Not over a completion that the caller has not seen, nor over another NIC's news.
    const View view{this, delivered_};
    const bool is_news = std::exchange(last_view, view) != view;
    amid_message = !is_news && engine_.bulk() != rnic::Bulk::kNone;
    lock.unlock();
  }
  if (moved) {
    policy.found(now);
  } else {
    rest(now, amid_message);
  }
}

// A program that posts without polling need not wake its thread for each acknowledgement: its next
// post takes them. But no peer may wait for that.
void LiveNic::on_sent(Instant now) {
  const std::size_t taken = progress(now);
  if (taken > 0) {
    policy.found(now);
  } else {
    check_fabric_sometimes(now);
  }
  if (taken < kReceiveBatch && engine_.is_quiet()) drive_.polled(now);
}

void LiveNic::check_fabric_sometimes(Instant now) {
  if (now < fabric_check_) return;
  check_fabric();
  fabric_check_ = now + kFabricCheck;
}

void LiveNic::rest(Instant now, bool amid_message) {
  using Step = fabric::WaitPolicy::Step;
  using WaitFor = fabric::HostPort::WaitFor;
  const Step step = policy.found_nothing(now, amid_message);
  if (step == Step::kLook) return;
  if (step == Step::kSleep && sleep_on_port(WaitFor::kFrame)) return;
  if (step == Step::kSleepForBatch && sleep_on_port(WaitFor::kBatch)) return;
  fabric::offer_core(policy);
}

bool LiveNic::sleep_on_port(fabric::HostPort::WaitFor what) {
  using fabric::WaitPolicy;
  Duration most = WaitPolicy::kForFrame;
  int wait_fd = -1;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || !is_up()) return false;
    if (driver_ == Driver::kProgramOnPort) return false;
    if (driver_ == Driver::kThreadOnPort) {
      // One sleeper a port: the thread sees that the program polls, and defers to it.
      if (!drive_.watches_memory()) kick();
      return false;
    }
    // Pending work is done first, and a packet that has just arrived prevents the sleep.
    if (engine_.wants_to_transmit()) return false;
    if (what == fabric::HostPort::WaitFor::kBatch && engine_.bulk() == rnic::Bulk::kAmid) {
      most = WaitPolicy::kForBatch;
    }
    most = std::min(most, engine_.deadline() - wire::monotonic_now());
    if (most <= Duration(0) || !port_->arm(what)) return true;
    driver_ = Driver::kProgramOnPort;
    wait_fd = port_->wait_fd();
  }
  const bool has_slept = fabric::HostPort::sleep(wait_fd, most);
  const std::scoped_lock lock(mutex_);
  drive_.polled(wire::monotonic_now());  // in advance, so that the thread does not interfere
  pass(Driver::kProgramOnPort, Driver::kProgram);
  if (!is_abandoned()) port_->withdraw();
  return has_slept;
}

}  // namespace cepheus::verbs
