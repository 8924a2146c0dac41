#include "soft-roce/verbs/report.h"

#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "soft-roce/verbs/environment.h"

namespace cepheus::verbs {
namespace {

// Never destroyed: the engine's thread may outlive static destructors.
struct LastError {
  std::mutex mutex;
  std::string text;
};
LastError& the_last_error() {
  static LastError* const error = new LastError;
  return *error;
}

}  // namespace

void set_last_error(const std::string& text) {
  LastError& error = the_last_error();
  const std::scoped_lock lock(error.mutex);
  error.text = text;
}

const char* last_error() {
  thread_local std::string copy;
  LastError& error = the_last_error();
  const std::scoped_lock lock(error.mutex);
  copy = error.text;
  return copy.c_str();
}

void complain(const std::string& text) {
  const int saved = errno;
  const std::string line = "cepheus: " + text + "\n";
  // One write: lines of several ranks on one terminal stay whole.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  errno = saved;
}

bool is_verbose() {
  static const bool verbose = Environment::read().verbose;
  return verbose;
}

void say(const std::string& text) {
  if (is_verbose()) complain(text);
}

}  // namespace cepheus::verbs
