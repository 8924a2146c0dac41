// /dev/null takes the place of a closed descriptor, opened so that its use fails: for writing as
// input, for reading as output. SIGXFSZ is ignored. run_program() catches std::exception and
// flushes std::cout; an output that was lost turns any code into 1.
#include "support/command_line/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <new>
#include <system_error>

namespace cepheus::command_line {

void prepare_process() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one.
    (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

int run_program(const std::string& program, const std::function<int()>& body) {
  const auto fail = [&](const std::string& why) {
    std::cerr << program << ": " << why << "\n";
    return 1;
  };
  try {
    const int code = body();
    if (std::cout.flush()) return code;
    return fail("the output can't be written: is its disk full?");
  } catch (const std::bad_alloc&) {
    return fail("no memory is left: free some, or raise its limit (ulimit -v)");
  } catch (const std::system_error& error) {
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    return fail(is_thread ? "can't start a thread: raise the limit of processes (ulimit -u)"
                          : error.what());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == SIG_IGN;
}

void handle_signals(std::initializer_list<int> signals, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int signal : signals) {
    if (!is_ignored(signal)) sigaction(signal, &action, nullptr);
  }
}

}  // namespace cepheus::command_line
