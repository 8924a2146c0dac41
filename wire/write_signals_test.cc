#include "wire/write_signals.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace cepheus::wire {
namespace {

// Exit status 0: both writes failed, and no signal ended the process.
[[noreturn]] void write_beyond_the_size_limit_and_to_nobody() {
  int ends[2];
  const rlimit none{0, 0};
  const int file = fileno(std::tmpfile());
  if (pipe(ends) != 0 || close(ends[0]) != 0 || setrlimit(RLIMIT_FSIZE, &none) != 0) std::_Exit(2);
  bool is_refused = false;
  {
    const WithoutWriteSignals quiet;
    is_refused = write(file, "x", 1) < 0 && errno == EFBIG;
    is_refused = write(ends[1], "x", 1) < 0 && errno == EPIPE && is_refused;
  }
  std::_Exit(is_refused && errno == EPIPE ? 0 : 1);
}

TEST(WithoutWriteSignals, WritesFailAndTheProgramGoesOn) {
  EXPECT_EXIT(write_beyond_the_size_limit_and_to_nobody(), testing::ExitedWithCode(0), "");
}

TEST(WithoutWriteSignals, LeavesASignalThatWasPendingBefore) {
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
  raise(SIGPIPE);
  { const WithoutWriteSignals quiet; }
  constexpr timespec kNow{};
  EXPECT_EQ(sigtimedwait(&pipe_signal, nullptr, &kNow), SIGPIPE);
  pthread_sigmask(SIG_UNBLOCK, &pipe_signal, nullptr);
}

}  // namespace
}  // namespace cepheus::wire
