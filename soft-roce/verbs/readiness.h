// A descriptor that polls readable while something waits: an eventfd kept at 0 or 1 by its owner.
#pragma once

#include <utility>

#include "wire/result.h"

namespace cepheus::verbs {

// set() and clear() alternate, under the owner's lock; wait() needs no lock.
class Readiness {
 public:
  static wire::Result<Readiness> create();
  ~Readiness();
  Readiness(Readiness&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Readiness& operator=(Readiness&&) = delete;

  int fd() const { return fd_; }
  void set();
  void clear();
  // In the child of a fork(): from now on the descriptor is another one than the parent's, of the
  // same number, and not readable.
  void renew();
  // Sleeps until readable. False with errno EAGAIN if the program made the descriptor non-blocking,
  // EINTR if a signal came.
  bool wait() const;

 private:
  explicit Readiness(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace cepheus::verbs
