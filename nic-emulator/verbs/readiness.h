// A descriptor that polls readable while something waits: an eventfd kept at 0 or 1 by its owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::verbs {

// set() and clear() alternate, under the owner's lock; wait() needs no lock.
class Readiness {
 public:
  static wire::Result<Readiness> create();
  // Only before any thread waits for it.
  Readiness(Readiness&& other) noexcept : fd_(std::move(other.fd_)) {}
  Readiness& operator=(Readiness&&) = delete;

  int fd() const { return fd_.get(); }
  void set();
  void clear();
  // In the child of a fork(): replaces the parent's descriptor by a new one of the same number that
  // is not readable.
  void renew();
  // Sleeps until readable. False with errno EAGAIN if the program made the descriptor non-blocking,
  // EINTR after a signal with a handler without SA_RESTART, as with a read of the descriptor.
  bool wait();

 private:
  explicit Readiness(int fd) : fd_(fd) {}
  wire::UniqueFd fd_;
  // A poll of the descriptor ends at every signal, and a read would consume the value. A wait on a
  // futex does neither.
  std::atomic<std::uint32_t> is_set_{0};
  std::atomic<int> waiting_{0};
};

}  // namespace cepheus::verbs
