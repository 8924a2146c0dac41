// The thread looks every 1 to 8 ms: less often while it finds nothing and no broadcast is in
// flight. It leaves out a look if the program itself has looked since. A program that waits gives
// its core away after kIdleLooks looks without work.
//
// end_thread() waits kEnd at most, then leaves the thread to itself: it may be stuck inside MPI. A
// forked child has no such thread and waits for none. Without a thread, one line names the
// consequence.
#include "pmpi/background.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "collectives/communicators.h"
#include "collectives/group/own_stack.h"
#include "collectives/group/transport.h"
#include "collectives/host_mpi.h"
#include "pmpi/request.h"

namespace cepheus::pmpi {

namespace {

constexpr std::chrono::milliseconds kShortest(1), kLongest(8);
constexpr unsigned kIdleLooks = 64;  // then a waiting rank gives its core away between looks

// A thread that is stuck in MPI does not hold the program's end up longer.
constexpr std::chrono::seconds kEnd(6);

struct Looker {
  std::mutex mutex;
  std::condition_variable changed;
  bool stops = false, has_ended = false;
  std::thread thread;
  const pid_t process = getpid();
};
// Never destroyed: a child of fork() has its memory, but not its thread.
std::shared_ptr<Looker>& looker = *new std::shared_ptr<Looker>;
std::atomic<bool> is_running{false};
std::atomic<unsigned> looks{0};  // of the program's own threads

void run(Looker& self) {
  std::chrono::milliseconds pause = kShortest;
  unsigned seen = looks.load();
  std::unique_lock<std::mutex> lock(self.mutex);
  while (!self.changed.wait_for(lock, pause, [&] { return self.stops; })) {
    const unsigned now = looks.load(std::memory_order_relaxed);
    if (std::exchange(seen, now) != now) continue;
    lock.unlock();
    (void)run_notices();
    lock.lock();
    if (self.stops) break;  // it may have been stuck until the program's end
    lock.unlock();
    const bool worked = coll::progress_in_background();
    pause = worked || is_in_flight() ? kShortest : std::min(2 * pause, kLongest);
    lock.lock();
  }
  self.has_ended = true;
  self.changed.notify_all();
}

}  // namespace

void start_background() {
  (void)
      coll::Transport::instance();  // destroyed behind stop_background() if the program just exits
  if (looker == nullptr) (void)std::atexit(stop_background);
  looker = std::make_shared<Looker>();
  const coll::LeaveSignals leave_signals;
  try {
    looker->thread = std::thread([self = looker] { run(*self); });
  } catch (const std::system_error& error) {
    coll::host::log(
        0,
        "cepheus: no thread for background progress: %s; a rank that lost its group may "
        "wait until this one is in a broadcast",
        error.what());
  }
  is_running = true;
}

void stop_background() {
  is_running = false;
  end_thread();
}

void end_thread() {
  if (looker == nullptr || looker->process != getpid() || !looker->thread.joinable()) return;
  Looker& self = *looker;
  std::unique_lock<std::mutex> lock(self.mutex);
  self.stops = true;
  self.changed.notify_all();
  // It may be the one that ends the job.
  const bool is_other = self.thread.get_id() != std::this_thread::get_id();
  if (is_other && self.changed.wait_for(lock, kEnd, [&] { return self.has_ended; })) {
    lock.unlock();
    self.thread.join();
  } else {
    self.thread.detach();
  }
}

void progress_background() {
  if (!is_running.load(std::memory_order_relaxed)) return;
  static thread_local unsigned idle = 0;
  looks.fetch_add(1, std::memory_order_relaxed);
  idle = coll::progress_in_background() ? 0 : idle + 1;
  if (idle >= kIdleLooks) sched_yield();
}

}  // namespace cepheus::pmpi
