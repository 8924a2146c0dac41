// Senders' shares of the queue before a link's rate, in bytes.
#pragma once

#include <deque>

#include "switch-emulator/ports/sender_shares.h"
#include "wire/types.h"

namespace cepheus::live {

class QueueShare {
 public:
  // Whether `sender` may have more waiting in a queue with `free` bytes left.
  bool has_room(wire::Instant now, fabric::SenderNo sender, wire::Bytes free) {
    for (; !waiting_.empty() && waiting_.front().until <= now; waiting_.pop_front()) {
      shares_[waiting_.front().sender].remove(waiting_.front().bytes);
    }
    return shares_[Shares::of(sender)].has_room(free);
  }
  // A frame waits `until` then: not before those that were added earlier.
  void add(fabric::SenderNo sender, wire::Bytes bytes, wire::Instant until) {
    shares_[Shares::of(sender)].add(bytes);
    waiting_.push_back({until, bytes, Shares::of(sender)});
  }

 private:
  using Shares = fabric::SenderShares<wire::Bytes>;
  struct Waiting {
    wire::Instant until;
    wire::Bytes bytes;
    Shares::Class sender;
  };
  std::deque<Waiting> waiting_;
  Shares shares_;
};

}  // namespace cepheus::live
