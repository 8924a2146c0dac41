// Bounds how long a call may sleep over something that a peer has in hand.
//
// Closing a peer's socket, or taking a message from it, also lets go of descriptors that the peer
// sent along: a TCP socket among them that lingers (SO_LINGER) keeps whoever closes it last for as
// long as it was told to. Listening sockets refuse descriptors where the kernel can (since Linux
// 6.16, SO_PASSRIGHTS); elsewhere a signal wakes the sleeper.
#pragma once

#include <ctime>

#include "wire/types.h"

namespace cepheus::live {

// While it lives, sleeps of the constructing thread are interrupted every `longest`.
class Patience {
 public:
  explicit Patience(wire::Duration longest);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  timer_t timer_{};
  bool is_set_ = false;
};

}  // namespace cepheus::live
