// Waits for descriptors: epoll with a function for each.
//
// Handlers run inside wait(), one at a time, and may watch and forget descriptors, including their
// own. With kEdge events are edge-triggered: a doorbell then needs no read, so no peer can block
// this thread in one.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::live {

class Poller {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  static constexpr std::uint32_t kIn = EPOLLIN, kOut = EPOLLOUT, kHangup = EPOLLRDHUP,
                                 kEdge = EPOLLET;

  static wire::Result<Poller> create();

  // Replaces an earlier watch of `fd`. False if the kernel refuses (out of memory or descriptors).
  bool watch(int fd, std::uint32_t events, Handler handler);
  // Call it before `fd` is closed.
  void forget(int fd);

  // Runs the handlers of ready descriptors; waits up to `timeout` if none is (0: not at all;
  // negative: for ever). The same in two steps: await(), then dispatch(). A std::system_error if
  // the kernel can't wait.
  void wait(wire::Duration timeout) {
    await(timeout);
    dispatch();
  }
  void await(wire::Duration timeout);
  void dispatch();

 private:
  struct Watch {
    std::uint32_t
        generation;  // distinguishes a late event of a forgotten descriptor from its successor's
    Handler handler;
  };

  explicit Poller(fabric::UniqueFd epoll) : epoll_(std::move(epoll)) {}

  fabric::UniqueFd epoll_;
  std::uint32_t generation_ = 0;
  std::unordered_map<int, Watch> watches_;
  std::array<epoll_event, 64> events_{};
  std::size_t ready_ = 0;  // number of events in events_
};

}  // namespace cepheus::live
