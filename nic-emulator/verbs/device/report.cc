// The last error is a fixed array of each thread, so a longer text is truncated. A line is one
// write(2): it raises no signal, ignores errors and keeps errno. CEPHEUS_VERBOSE is read once, at
// its first use.
#include "nic-emulator/verbs/device/report.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "nic-emulator/verbs/device/environment.h"
#include "wire/write_signals.h"

namespace cepheus::verbs {
namespace {

// An object without a destructor: code at a thread's end may still report.
thread_local std::array<char, 1024> the_last_error{};

}  // namespace

void set_last_error(const std::string& text) {
  the_last_error[text.copy(the_last_error.data(), the_last_error.size() - 1)] = '\0';
}

const char* last_error() { return the_last_error.data(); }

void print_line(const std::string& text) {
  const int saved = errno;
  const std::string line = "cepheus: " + text + "\n";
  const wire::WithoutWriteSignals quiet;
  // One write: lines of several ranks on one terminal stay whole.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  errno = saved;
}

bool is_verbose() {
  static const bool verbose = Environment::read().verbose;
  return verbose;
}

void log_verbose(const std::string& text) {
  if (is_verbose()) print_line(text);
}

}  // namespace cepheus::verbs
