// Threads of ours beside the program's.
//
// A stack of ours for deep calls: the program's thread may have a few KiB alone, which suffice for its
// MPI. UCX, drivers and libraries that they load have buffers for paths and messages on the stack.
#pragma once

#include <signal.h>

#include <functional>

namespace cepheus::coll {

// A thread that starts meanwhile leaves signals to the program's threads. But signals of its own
// accesses to the program's memory are for the handlers, which may let it go on: programs
// write-protect memory, and the emulated NIC notices what is gone. Blocked, they end the process.
class LeaveSignals {
 public:
  LeaveSignals();
  ~LeaveSignals();
  LeaveSignals(const LeaveSignals&) = delete;
  LeaveSignals& operator=(const LeaveSignals&) = delete;

 private:
  sigset_t before_;
};

// Runs `work` in another thread, and waits for its end. If no thread can start, it runs in the caller's.
void on_own_stack(const std::function<void()>& work);

}  // namespace cepheus::coll
