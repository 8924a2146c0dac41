// Starting a thread beside a program's own: the new thread inherits the mask of signals (on Linux
// sigprocmask() is of the thread).
#pragma once

#include <csignal>
#include <initializer_list>

namespace cepheus::wire {

// A thread that starts meanwhile leaves signals to the program's threads. But signals of its own
// accesses to the program's memory are for the handlers, which may let it go on: programs
// write-protect memory, and the emulated NIC notices what is gone. Blocked, they end the process.
class LeaveSignals {
 public:
  LeaveSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, own);
    (void)::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~LeaveSignals() { (void)::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  LeaveSignals(const LeaveSignals&) = delete;
  LeaveSignals& operator=(const LeaveSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace cepheus::wire
