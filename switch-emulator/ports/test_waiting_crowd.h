// For tests: as many waiters behind a descriptor as a process may have, on threads that sleep until
// the end.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "switch-emulator/ports/unique_fd.h"

namespace cepheus::fabric {

class WaitingCrowd {
 public:
  // Each thread waits as many times as poll(2) allows.
  WaitingCrowd(int fd, std::size_t threads) : end_(eventfd(0, EFD_CLOEXEC)) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const std::size_t most = std::min<std::size_t>(limit.rlim_cur, 20'000);
    for (std::size_t n = 0; n < threads; ++n) {
      threads_.emplace_back([this, fd, most] {
        // Waits for nothing: a thread that makes the descriptor readable still has to visit every
        // waiter.
        std::vector<pollfd> waits(most, pollfd{fd, 0, 0});
        waits.back() = {end_.get(), POLLIN, 0};
        poll(waits.data(), waits.size(), -1);
      });
    }
  }
  ~WaitingCrowd() {
    eventfd_write(end_.get(), 1);
    for (std::thread& thread : threads_) thread.join();
  }
  WaitingCrowd(const WaitingCrowd&) = delete;
  WaitingCrowd& operator=(const WaitingCrowd&) = delete;

 private:
  UniqueFd end_;
  std::vector<std::thread> threads_;
};

}  // namespace cepheus::fabric
