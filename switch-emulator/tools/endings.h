// The signals that end a program of cepheusctl.
#pragma once

#include <csignal>
#include <initializer_list>

namespace cepheus::tools {

// Blocked from now on, in threads to come too: one that waits for them loses none.
inline sigset_t block_endings(std::initializer_list<int> signals = {SIGINT, SIGTERM}) {
  sigset_t endings;
  sigemptyset(&endings);
  for (const int signal : signals) sigaddset(&endings, signal);
  ::pthread_sigmask(SIG_BLOCK, &endings, nullptr);
  return endings;
}

}  // namespace cepheus::tools
