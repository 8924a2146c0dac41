// Frames on the links of a live fabric: their faults and arrival times.
//
// References: the caller keeps those of the frames it passes in; a stored frame gets its own. No
// host's frames use up all memory, of frames under way or of the queue before a slow link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "net/link.h"
#include "switch-emulator/live/traffic.h"
#include "switch-emulator/ports/payload_pool.h"
#include "switch-emulator/ports/sender_shares.h"
#include "wire/frame.h"
#include "wire/types.h"

namespace cepheus::live {

// The account that is charged for a frame.
struct Origin {
  fabric::SenderNo host = fabric::kFabricItself;
  bool is_unanswered = false;  // no answer has paid for it (unanswered_account.h)
};

struct Flight {
  wire::Frame frame;
  std::uint32_t link = 0;  // index of the link that carries it
  Origin origin;
  bool corrupt = false;  // a bit was flipped on the way
};

// Frames on their way: a priority queue by arrival time, first in first out among equals.
class DelayLine {
 public:
  std::size_t size() const { return order_.size(); }
  wire::Instant next_arrival() const {
    return order_.empty() ? wire::kNever : order_.front().arrival;
  }

  void push(wire::Instant arrival, const Flight& flight) {
    std::uint32_t place;
    if (free_.empty()) {
      place = static_cast<std::uint32_t>(flights_.size());
      flights_.push_back(flight);
    } else {
      place = free_.back();
      free_.pop_back();
      flights_[place] = flight;
    }
    order_.push_back({arrival, ++sequence_, place});
    std::push_heap(order_.begin(), order_.end(), later);
  }

  // Precondition: size() > 0.
  void pop(Flight& flight) {
    std::pop_heap(order_.begin(), order_.end(), later);
    const std::uint32_t place = order_.back().place;
    order_.pop_back();
    flight = flights_[place];
    free_.push_back(place);
  }

 private:
  struct Entry {
    wire::Instant arrival;
    std::uint64_t sequence;
    std::uint32_t place;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.arrival != b.arrival ? a.arrival > b.arrival : a.sequence > b.sequence;
  }

  std::uint64_t sequence_ = 0;
  std::vector<Entry> order_;     // heap, earliest in front
  std::vector<Flight> flights_;  // grows to the largest number ever under way
  std::vector<std::uint32_t> free_;
};

// Senders' shares of the queue before a link's rate, in bytes.
class QueueShare {
 public:
  // Whether `sender` may have another frame in a queue with `free` bytes left.
  bool has_space(wire::Instant now, fabric::SenderNo sender, wire::Bytes free) {
    for (; !waiting_.empty() && waiting_.front().until <= now; waiting_.pop_front()) {
      shares_[waiting_.front().sender].remove(waiting_.front().bytes);
    }
    return shares_[Shares::of(sender)].has_space(free);
  }
  // A frame waits `until` then, which is not before those of earlier frames.
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

class Transit {
 public:
  static constexpr std::size_t kMaxFlights = 1 << 16;  // frames on all links

  class Arrivals {
   public:
    virtual void arrive(const Flight& flight, wire::Instant now) = 0;

   protected:
    ~Arrivals() = default;
  };
  Transit(fabric::PayloadPools& pools, std::size_t hosts, Arrivals& arrivals);

  // Adds a link; returns its number. Frames without a delay arrive at once, within transmit().
  // Those on a trunk do not, so that no switch is entered while another one's outputs are being
  // read. `drops` counts its losses.
  enum class Kind : std::uint8_t { kUplink, kDownlink, kTrunk };
  std::uint32_t add(const net::LinkConfig& config, Kind kind, LinkSideDrops& drops);
  net::Link& link(std::uint32_t number) { return links_[number].link; }
  const net::Link& link(std::uint32_t number) const { return links_[number].link; }
  Kind kind(std::uint32_t number) const { return links_[number].kind; }
  LinkSideDrops& drops(std::uint32_t number) { return *links_[number].drops; }
  // The caller keeps its own queue before the link, and then also the shares.
  std::unique_ptr<QueueShare> take_queue_share(std::uint32_t number) {
    return std::move(links_[number].queue);
  }

  // Puts a frame on its link; a pause frame goes before all others, and has no faults.
  void transmit(const Flight& flight, wire::Instant now);
  void transmit_control(const Flight& flight, wire::Instant now);
  bool has_space(const Origin& origin) const;
  wire::Instant next_arrival() const { return delay_line_.next_arrival(); }
  // Precondition: a frame is under way.
  void land_next(wire::Instant now);

  // A frame that stays beside the link, with its own reference to its payload. False, and counted,
  // if there is no space for it.
  bool keep(std::uint32_t number, wire::Frame& frame);
  // ... leaves. The caller releases the reference.
  void let_go(std::uint32_t number, const wire::Frame& frame);

 private:
  struct DirectedLink {
    net::Link link;
    Kind kind;
    LinkSideDrops* drops;
    fabric::EgressShare under_way;
    std::unique_ptr<QueueShare> queue;  // null: the queue is not shared, or the caller keeps it
  };
  net::Passage offer(const Flight& flight, wire::Instant now);
  void transmit_corrupt(const Flight& flight, const net::Passage& passage, wire::Instant now);
  bool make_corrupt(const wire::Frame& frame, std::uint32_t bit, wire::Frame& damaged);
  void schedule(const Flight& flight, wire::Instant arrival, wire::Instant now);
  void release(const wire::Frame& frame) {
    if (frame.ref != wire::kNoBuffer) pools_.drop(frame.ref);
  }

  fabric::PayloadPools& pools_;
  Arrivals& arrivals_;
  std::vector<DirectedLink> links_;
  DelayLine delay_line_;
  std::vector<wire::Share<std::size_t, 1>> flights_;  // under way, by host
  std::vector<std::uint8_t> contiguous_;
};

}  // namespace cepheus::live
