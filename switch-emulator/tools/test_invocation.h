// For tests: a run of cepheusctl, with both outputs in one pipe.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

namespace cepheus::tools {

class Invocation {
 public:
  explicit Invocation(std::vector<std::string> arguments) {
    int ends[2];
    if (::pipe(ends) != 0) ADD_FAILURE() << std::strerror(errno);
    out_ = ends[0];
    arguments.insert(arguments.begin(), CEPHEUSCTL);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::unsetenv("CEPHEUS_FABRIC");
      ::execv(CEPHEUSCTL, argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
  }
  ~Invocation() {
    exit_code();
    ::close(out_);
  }

  // Output so far, once it contains `text`; all of it if the run ends without it.
  const std::string& output_until(const std::string& text) {
    while (output_.find(text) == std::string::npos) {
      pollfd wait{out_, POLLIN, 0};
      if (::poll(&wait, 1, 10'000) != 1) break;
      char chunk[4096];
      const ssize_t n = ::read(out_, chunk, sizeof chunk);
      if (n <= 0) break;
      output_.append(chunk, static_cast<std::size_t>(n));
    }
    return output_;
  }
  const std::string& output() { return output_until("\001 never"); }
  void interrupt() { ::kill(pid_, SIGINT); }
  int exit_code() {
    if (!ended_) {
      output();
      int status = 0;
      ::waitpid(pid_, &status, 0);
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      ended_ = true;
    }
    return exit_code_;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string output_;
  bool ended_ = false;
  int exit_code_ = -1;
};

}  // namespace cepheus::tools
