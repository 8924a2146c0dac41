#include "support/command_line/process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace cepheus::command_line {
namespace {

// In a process of its own: it changes descriptors, limits and signals.
template <typename Body>
void in_a_process(Body body) {
  EXPECT_EXIT(std::_Exit(body() ? 0 : 1), testing::ExitedWithCode(0), "");
}

bool is_too_long_for_limit(int file) {
  const rlimit none{0, 0};
  return setrlimit(RLIMIT_FSIZE, &none) == 0 && write(file, "x", 1) < 0 && errno == EFBIG;
}

TEST(Process, AClosedStandardDescriptorIsNoPipes) {
  in_a_process([] {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    prepare_process();
    int ends[2];
    char byte = 0;
    const bool reads = read(STDIN_FILENO, &byte, 1) >= 0, writes = write(STDOUT_FILENO, "", 1) >= 0;
    return pipe(ends) == 0 && ends[0] > STDERR_FILENO && !reads && !writes;
  });
}

TEST(Process, AWriteBeyondTheSizeLimitFails) {
  in_a_process([] {
    prepare_process();
    return is_too_long_for_limit(fileno(std::tmpfile()));
  });
}

TEST(Process, IgnoredSignalsStayIgnored) {
  in_a_process([] {
    std::signal(SIGHUP, SIG_IGN);
    handle_signals({SIGHUP, SIGTERM}, [](int) {});
    struct sigaction term {};
    sigaction(SIGTERM, nullptr, &term);
    return is_ignored(SIGHUP) && !is_ignored(SIGTERM) && term.sa_handler != SIG_DFL;
  });
}

}  // namespace
}  // namespace cepheus::command_line
