// A library's writes in a program that did not ask for them: they fail, and no signal ends it.
#pragma once

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace cepheus::wire {

// While it lives, SIGXFSZ and SIGPIPE of this thread's own writes are taken away (on Linux
// sigprocmask() is of the thread).
class WithoutWriteSignals {
 public:
  WithoutWriteSignals() {
    sigpending(&pending_before_);
    sigset_t both = of_writes();
    ::sigprocmask(SIG_BLOCK, &both, &mask_before_);
  }
  ~WithoutWriteSignals() {
    const int of_the_write = errno;
    sigset_t caused = of_writes();
    for (const int signal : {SIGXFSZ, SIGPIPE}) {
      if (sigismember(&pending_before_, signal) == 1) sigdelset(&caused, signal);
    }
    constexpr timespec kNow{};
    while (sigtimedwait(&caused, nullptr, &kNow) > 0) {
    }
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    errno = of_the_write;
  }
  WithoutWriteSignals(const WithoutWriteSignals&) = delete;
  WithoutWriteSignals& operator=(const WithoutWriteSignals&) = delete;

 private:
  static sigset_t of_writes() {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGXFSZ);
    sigaddset(&both, SIGPIPE);
    return both;
  }

  sigset_t pending_before_{}, mask_before_{};
};

}  // namespace cepheus::wire
