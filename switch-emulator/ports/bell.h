// How the switch wakes a client: an eventfd of the switch's own, behind an epoll descriptor that
// the client gets.
//
//     switch: ring() -> eventfd <-watches- epoll descriptor <-waits- client
//
// A descriptor that is passed on shares its flags with the one that stays. With an eventfd, a
// client could clear O_NONBLOCK and fill the counter: the next ring would block until a read. Of
// the epoll descriptor the client learns only that it was rung: it becomes readable, until the
// event is taken (epoll_wait(2), edge-triggered). Not thread-safe.
#pragma once

#include <chrono>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::fabric {

class Bell {
 public:
  Bell() = default;  // has no client
  // kUnavailable: no descriptor is left.
  static wire::Result<Bell> create();

  // The client's end, until it has been handed over.
  int client_end() const { return client_end_.get(); }
  void forget_client_end() { client_end_.reset(); }

  // Never blocks.
  void ring();
  // Whether each ring takes long: a client may have as many waiters behind its end as it has
  // descriptors, and a ring wakes all of them.
  bool is_abused() const { return slow_rings_ >= kMostSlowRings; }

 private:
  // A hypervisor that takes the core away makes a few consecutive rings slow without abuse. So the
  // abuse costs the switch this many slow rings, once.
  static constexpr unsigned kMostSlowRings = 32;

  UniqueFd own_end_, client_end_;
  std::chrono::nanoseconds slow_{};  // longer rings are slow, on this machine
  // The last ring took long, perhaps only because other threads had the core.
  bool is_suspect_ = false;
  unsigned slow_rings_ = 0;  // consecutive ones, by the time that they used the core
};

}  // namespace cepheus::fabric
