#include "pmpi/background.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "collectives/communicators.h"
#include "collectives/group/transport.h"

namespace cepheus::pmpi {

namespace {

constexpr std::chrono::milliseconds kShortest(1), kLongest(8);
constexpr unsigned kIdleLooks = 64;  // then a waiting rank gives its core away between looks

struct Looker {
  std::mutex mutex;
  std::condition_variable changed;
  bool stops = false;
  std::thread thread;
};
// Never destroyed: a child of fork() has its memory, but not its thread.
Looker* looker = nullptr;
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
    run_notices();
    const bool worked = coll::progress_in_background();
    pause = worked ? kShortest : std::min(2 * pause, kLongest);
    lock.lock();
  }
}

}  // namespace

void start_background() {
  (void)
      coll::Transport::instance();  // destroyed behind stop_background() if the program just exits
  if (looker == nullptr) {
    looker = new Looker;
    (void)std::atexit(stop_background);
  }
  looker->stops = false;
  // The program's threads run the program's signal handlers.
  sigset_t all, before;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  looker->thread = std::thread(run, std::ref(*looker));
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  is_running = true;
}

void stop_background() {
  is_running = false;
  end_thread();
}

void end_thread() {
  if (looker == nullptr || !looker->thread.joinable()) return;
  {
    const std::lock_guard<std::mutex> guard(looker->mutex);
    looker->stops = true;
  }
  looker->changed.notify_all();
  // It may be the one that ends the job.
  if (looker->thread.get_id() == std::this_thread::get_id())
    looker->thread.detach();
  else
    looker->thread.join();
}

void progress_background() {
  if (!is_running.load(std::memory_order_relaxed)) return;
  static thread_local unsigned idle = 0;
  looks.fetch_add(1, std::memory_order_relaxed);
  idle = coll::progress_in_background() ? 0 : idle + 1;
  if (idle >= kIdleLooks) sched_yield();
}

}  // namespace cepheus::pmpi
