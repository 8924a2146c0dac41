// The signals that end a long-running command of cepheusctl.
#pragma once

#include <csignal>
#include <initializer_list>

#include "support/command_line/process.h"

namespace cepheus::tools {

// Blocks them from now on, in future threads as well: a thread that waits for them loses none.
// Ignored ones, as after nohup, stay ignored: waiting would take them.
inline sigset_t block_endings(std::initializer_list<int> signals = {SIGINT, SIGTERM}) {
  sigset_t endings;
  sigemptyset(&endings);
  for (const int signal : signals) {
    if (!command_line::is_ignored(signal)) sigaddset(&endings, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &endings, nullptr);
  return endings;
}

}  // namespace cepheus::tools
