// How the switch wakes a client: an eventfd that stays the switch's own, behind an epoll descriptor
// that the client gets.
//
//     switch: ring() -> eventfd <-watches- epoll descriptor <-waits- client
//
// A descriptor that is passed on shares its flags with the one that is kept. Of an eventfd a client
// could clear O_NONBLOCK and fill the counter: whoever rings next sleeps until somebody reads. Of
// the epoll descriptor it learns that it was rung, no more: it becomes readable, and is silent
// again once the event was taken (epoll_wait(2), edge-triggered). Not thread-safe.
#pragma once

#include <chrono>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::fabric {

class Bell {
 public:
  Bell() = default;  // rings nobody
  // kUnavailable: no descriptor to be had.
  static wire::Result<Bell> create();

  // The client's end, until it has been handed over.
  int client_end() const { return client_end_.get(); }
  void forget_client_end() { client_end_.reset(); }

  // Never blocks.
  void ring();
  // Each ring takes long: a client may hang as many waiters behind its end as it has descriptors,
  // and all are woken by whoever rings.
  bool is_abused() const { return slow_rings_ >= kMostSlowRings; }

 private:
  // A few in a row are slow without abuse where a hypervisor takes the core away; the abuse costs
  // the switch this many, once.
  static constexpr unsigned kMostSlowRings = 32;

  UniqueFd own_end_, client_end_;
  std::chrono::nanoseconds slow_{};  // a ring that takes longer is slow, on this machine
  bool is_suspect_ = false;          // the last ring took long, if only because others had the core
  unsigned slow_rings_ = 0;          // in a row, by the time that they kept the core busy
};

}  // namespace cepheus::fabric
