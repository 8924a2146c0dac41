// Senders' shares of the queue before a link's rate, in bytes: whoever fills it leaves room for
// others, as on rings (ports/ring_share.h).
#pragma once

#include <array>
#include <deque>

#include "switch-emulator/ports/ring_share.h"
#include "wire/types.h"

namespace cepheus::live {

class QueueShare {
 public:
  // Whether `sender` may have more waiting in a queue with `free` bytes left.
  bool has_room(wire::Instant now, fabric::SenderNo sender, wire::Bytes free) {
    for (; !waiting_.empty() && waiting_.front().until <= now; waiting_.pop_front()) {
      held_[waiting_.front().sender] -= waiting_.front().bytes;
    }
    return held_[fabric::RingShare::of(sender)] < 2 * free;
  }
  // A frame waits `until` then: not before those that were added earlier.
  void add(fabric::SenderNo sender, wire::Bytes bytes, wire::Instant until) {
    const auto its_class = fabric::RingShare::of(sender);
    held_[its_class] += bytes;
    waiting_.push_back({until, bytes, its_class});
  }

 private:
  struct Waiting {
    wire::Instant until;
    wire::Bytes bytes;
    fabric::RingShare::Class sender;
  };
  std::deque<Waiting> waiting_;
  std::array<wire::Bytes, fabric::RingShare::kClasses> held_{};
};

}  // namespace cepheus::live
