// A descriptor that polls readable while something waits: an eventfd kept at 0 or 1 by its owner.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <utility>

#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::verbs {

// set() and clear() alternate, under the owner's lock; wait() needs no lock.
class Readiness {
 public:
  static wire::Result<Readiness> create();
  // Only before any thread waits for it.
  Readiness(Readiness&& other) noexcept : fd_(std::move(other.fd_)) { ::sem_init(&awake_, 0, 0); }
  Readiness& operator=(Readiness&&) = delete;

  int fd() const { return fd_.get(); }
  void set();
  void clear();
  // In the child of a fork(): replaces the parent's descriptor by a new one of the same number that
  // is not readable.
  void renew();
  // Sleeps until readable. False with errno EAGAIN if the program made the descriptor non-blocking,
  // EINTR after a signal with a handler without SA_RESTART, as with a read of the descriptor. A
  // cancellation point, as that is.
  bool wait();

 private:
  explicit Readiness(int fd) : fd_(fd) { ::sem_init(&awake_, 0, 0); }
  wire::UniqueFd fd_;
  std::atomic<bool> is_set_{false};
  // A poll of the descriptor ends at every signal, and a read would consume the value. A wait on a
  // semaphore does neither. Each waiting thread takes one from it.
  sem_t awake_;
  std::atomic<int> waiting_{0};
};

}  // namespace cepheus::verbs
