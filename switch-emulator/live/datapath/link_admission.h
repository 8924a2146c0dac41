// Admission to a link of a live fabric: the one object that knows how much the link may hold.
//
//   account         limit                                        counter of a refused frame
//   queue           the sender's share of its bytes              drop_queue_share
//   own frames      the sender's share of kMostOwn there         drop_queue_share
//   payload slots   the link's share of each area of slots       drop_link_share
//                   own frames: the sender's share of it, too    drop_link_share
//   delay line      the sender's share of all frames under way   drop_delay_line_full
//
// No account refuses lossless frames, which have no share of a queue: where they came in, their
// neighbour was paused in time (net/flow_control.h). The wire itself holds no more than its rate
// and delay allow.
//
// Frames of a switch's own (fabric::Space::kOwn: results of reductions, and their first
// acknowledgements) have come in nowhere, and wait on lossless links as well. So the link's share of
// slots refuses them, and so do two of OwnShare: of slots, and of frames, because many are too short
// for slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "switch-emulator/engine/switch.h"
#include "switch-emulator/live/status/traffic.h"
#include "switch-emulator/ports/payload_pool.h"
#include "switch-emulator/ports/sender_shares.h"
#include "wire/frame.h"
#include "wire/types.h"

namespace cepheus::live {

// The account that is charged for a frame.
struct Origin {
  fabric::SenderNo host = fabric::kFabricItself;
  bool is_unanswered = false;  // no answer has paid for it (unanswered_account.h)
  fabric::Worth worth = fabric::Worth::kAnswer;
};

// What is known of a frame on a link, beside the frame.
struct Hop {
  std::uint32_t link = 0;  // index of the link that carries it
  Origin origin;
  bool corrupt = false;      // a bit was flipped on the way
  bool is_lossless = false;  // has its space where it came in: no account of the link refuses it
  bool is_own = false;       // ... or is a switch's own (fabric::Space::kOwn)
};

// A frame that waits, or is under way.
struct Flight {
  wire::Frame frame;
  Hop hop;
};

// Frames under way on all links, by sender.
class FlightAccount {
 public:
  static constexpr std::size_t kMost = 1 << 16;  // lossless ones may exceed it

  explicit FlightAccount(std::size_t hosts) : hosts_(hosts) {}
  // A host may have half of all frames under way, so that others' frames always fit.
  bool has_space(fabric::SenderNo sender) const {
    const std::size_t free = kMost - std::min(count_, kMost);
    return sender == fabric::kFabricItself ? free > 0 : hosts_[sender].has_space(free);
  }
  void add(fabric::SenderNo sender) {
    ++count_;
    if (sender != fabric::kFabricItself) hosts_[sender].add();
  }
  void remove(fabric::SenderNo sender) {
    --count_;
    if (sender != fabric::kFabricItself) hosts_[sender].remove();
  }

 private:
  std::size_t count_ = 0;
  std::vector<wire::Share<std::size_t, 1>> hosts_;
};

// Senders' shares of the queue before a link's rate, in bytes.
class QueueShare {
 public:
  // Whether `sender` may have another frame in a queue with `free` bytes left.
  bool has_space(wire::Instant now, fabric::SenderNo sender, wire::Bytes free) {
    forget_sent(now);
    return shares_[Shares::of(sender)].has_space(free);
  }
  // A frame waits `until` then, which is not before those of earlier frames.
  void add(wire::Instant now, fabric::SenderNo sender, wire::Bytes bytes, wire::Instant until) {
    forget_sent(now);
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
  void forget_sent(wire::Instant now) {
    for (; !waiting_.empty() && waiting_.front().until <= now; waiting_.pop_front()) {
      shares_[waiting_.front().sender].remove(waiting_.front().bytes);
    }
  }
  std::deque<Waiting> waiting_;
  Shares shares_;
};

// Shares of the frames of a switch's own before one lossless link, or of the slots that they occupy.
// The sender is the host that has caused the frame. A group has at most two for each unit of its
// window, but two hosts may have hundreds of groups.
class OwnShare {
 public:
  static constexpr std::uint32_t kMostOwn = 8192;  // frames that wait

  explicit OwnShare(std::uint32_t most) : most_(most) {}
  bool has_space(fabric::SenderNo sender) {
    return shares_[Shares::of(sender)].has_space(most_ - std::min(count_, most_));
  }
  void add(fabric::SenderNo sender) {
    ++count_;
    shares_[Shares::of(sender)].add();
  }
  void remove(fabric::SenderNo sender) {
    --count_;
    shares_[Shares::of(sender)].remove();
  }

 private:
  using Shares = fabric::SenderShares<std::uint16_t>;
  std::uint32_t most_;
  std::uint32_t count_ = 0;
  Shares shares_;
};

class LinkAdmission {
 public:
  // `shares_queue`: senders have shares of the queue before the link. References outlive this.
  LinkAdmission(fabric::PayloadPools& pools, FlightAccount& flights, LinkSideDrops& drops,
                bool shares_queue)
      : pools_(pools),
        flights_(flights),
        drops_(drops),
        slots_(pools),
        own_slots_(slots_.most_of_one()),
        queue_(shares_queue ? std::make_unique<QueueShare>() : nullptr) {}

  // Whether a frame may wait in the queue, which has `free` bytes left; else it is counted.
  bool admit_to_queue(wire::Instant now, const Hop& hop, wire::Bytes free) {
    const fabric::SenderNo sender = hop.origin.host;
    const bool fits = hop.is_own ? own_.has_space(sender)
                                 : hop.is_lossless || queue_->has_space(now, sender, free);
    drops_.queue_share += fits ? 0 : 1;
    return fits;
  }
  // It waits there `until` then, which is not before those of earlier frames.
  void note_queued(wire::Instant now, const Hop& hop, wire::Bytes bytes, wire::Instant until) {
    if (hop.is_own) own_.add(hop.origin.host);
    if (!hop.is_lossless) queue_->add(now, hop.origin.host, bytes, until);
  }
  // It leaves the queue.
  void note_left(const Hop& hop) {
    if (hop.is_own) own_.remove(hop.origin.host);
  }

  // A frame stays beside the link, with its own reference to its payload. False, and counted, if
  // there is no slot for it. let_go() when it leaves; the caller then releases the reference.
  bool keep(Flight& flight);
  void let_go(const Flight& flight) {
    if (flight.frame.ref == wire::kNoBuffer) return;
    slots_.remove(flight.frame.ref);
    if (flight.hop.is_own) own_slots_.remove(flight.hop.origin.host);
  }

  // The same for a frame that is on the wire from now on until take_off().
  bool put_on(Flight& flight);
  void take_off(const Flight& flight) {
    flights_.remove(flight.hop.origin.host);
    let_go(flight);
  }

 private:
  fabric::PayloadPools& pools_;
  FlightAccount& flights_;
  LinkSideDrops& drops_;
  fabric::EgressShare slots_;
  OwnShare own_slots_;
  std::unique_ptr<QueueShare> queue_;
  OwnShare own_{OwnShare::kMostOwn};
};

}  // namespace cepheus::live
