// A thread for calls of the device that may block: changes of a queue pair's state. A change to RTR
// waits up to a second for the neighbour of the group's address, and firmware takes its time for
// every other one. The thread exists while there are calls and for a second after them, and takes
// no signals.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace cepheus::mcast {

class SlowCalls {
 public:
  using Call = std::function<void()>;  // throws nothing

  SlowCalls() = default;
  ~SlowCalls();  // waits for all calls

  // The calls are made one after the other, in this order. False: the system gives no thread.
  bool add(Call call);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  bool stop_ = false;
  bool is_running_ = false;
  std::thread thread_;
};

}  // namespace cepheus::mcast
