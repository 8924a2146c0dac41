// A thread that serves the groups this process leads while the program does not call
// mcast_progress() for long. Switches forget a group with a silent leader, members ask the leader
// for lagging members, and UNREGISTER may have to be repeated. The thread exists only while there
// is such a group, sleeps most of the time and takes no signals.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "wire/types.h"

namespace cepheus::mcast {

class KeepAlive {
 public:
  // `work` does the due work and returns the time of its next call; kNever ends the thread.
  explicit KeepAlive(std::function<wire::Instant()> work) : work_(std::move(work)) {}
  ~KeepAlive() { stop(); }

  // If the thread runs already, `work` is called once more before the thread ends by itself. Throws
  // std::system_error if the system gives no thread.
  void start();
  // Waits for the work in hand. Not under a lock that `work` takes.
  void stop();

 private:
  void run();

  const std::function<wire::Instant()> work_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  bool is_wanted_ = false;  // start() was called since `work` was last called
  bool has_ended_ = false;  // by itself
  std::thread thread_;
};

}  // namespace cepheus::mcast
