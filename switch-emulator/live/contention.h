// Whether hosts beside one send, too. Pure.
#pragma once

#include <chrono>
#include <cstddef>

#include "wire/types.h"

namespace cepheus::live {

class Contention {
 public:
  // A host that has sent within this time is taken to go on: longer than a scheduler keeps a
  // program from its core beside others.
  static constexpr wire::Duration kLasts = std::chrono::milliseconds(10);

  void sent(std::size_t host, wire::Instant now) {
    if (host != last_sender_) before_ = last_;
    last_sender_ = host;
    last_ = now;
  }
  bool others_send(std::size_t host, wire::Instant now) const {
    return (host == last_sender_ ? before_ : last_) + kLasts > now;
  }

 private:
  std::size_t last_sender_ = 0;
  wire::Instant last_{}, before_{};  // before_: when another host than last_sender_ sent last
};

}  // namespace cepheus::live
