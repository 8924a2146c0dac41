#include "switch-emulator/live/patience.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

namespace cepheus::live {
namespace {

// Not SIGALRM, which belongs to programs.
int signal_number() {
  static const int number = [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};  // it interrupts, no more: calls are not to be restarted
    sigaction(SIGRTMIN, &action, nullptr);
    return SIGRTMIN;
  }();
  return number;
}

}  // namespace

Patience::Patience(wire::Duration longest) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_number();
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  is_set_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  if (!is_set_) return;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, signal_number());
  pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec each{seconds.count(), (longest - seconds).count()};
  const itimerspec times{each, each};
  timer_settime(timer_, 0, &times, nullptr);
}

Patience::~Patience() {
  if (is_set_) timer_delete(timer_);
}

}  // namespace cepheus::live
