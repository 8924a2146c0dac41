// Frames on the links of a live fabric: their faults and arrival times.
//
// References: the caller keeps those of the frames it passes in; a stored frame gets its own. No
// host's frames use up all memory, of frames under way or of the queue before a slow link
// (link_admission.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "net/link.h"
#include "switch-emulator/live/datapath/link_admission.h"
#include "switch-emulator/ports/payload_pool.h"
#include "wire/frame.h"
#include "wire/types.h"

namespace cepheus::live {

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

class Transit {
 public:
  class Arrivals {
   public:
    virtual void arrive(const wire::Frame& frame, const Hop& hop, wire::Instant now) = 0;

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
  LinkAdmission& admission(std::uint32_t number) { return links_[number].admission; }
  // The caller keeps the queue before the link, and admits frames to it.
  void leave_queue_to_caller(std::uint32_t number) { links_[number].has_queue = false; }

  // Puts a frame on its link; a pause frame goes before all others, and has no faults.
  void transmit(const wire::Frame& frame, const Hop& hop, wire::Instant now);
  void transmit_control(const wire::Frame& frame, const Hop& hop, wire::Instant now);
  bool has_space(const Origin& origin) const { return flights_.has_space(origin.host); }
  wire::Instant next_arrival() const { return delay_line_.next_arrival(); }
  // Precondition: a frame is under way.
  void land_next(wire::Instant now);

 private:
  struct DirectedLink {
    net::Link link;
    Kind kind;
    bool has_queue;  // which senders share, and which the caller does not keep
    LinkSideDrops* drops;
    LinkAdmission admission;
  };
  net::Passage offer_to_queue(DirectedLink& link, const wire::Frame& frame, const Hop& hop,
                              wire::Instant now);
  void transmit_corrupt(const wire::Frame& frame, const Hop& hop, const net::Passage& passage,
                        wire::Instant now);
  bool make_corrupt(const wire::Frame& frame, std::uint32_t bit, wire::Frame& damaged);
  void schedule(DirectedLink& link, const wire::Frame& frame, const Hop& hop, wire::Instant arrival,
                wire::Instant now);
  void put_on(DirectedLink& link, const wire::Frame& frame, const Hop& hop, wire::Instant arrival);
  void release(const wire::Frame& frame) {
    if (frame.ref != wire::kNoBuffer) pools_.drop(frame.ref);
  }

  fabric::PayloadPools& pools_;
  Arrivals& arrivals_;
  FlightAccount flights_;
  std::vector<DirectedLink> links_;
  DelayLine delay_line_;
  std::vector<std::uint8_t> contiguous_;
};

}  // namespace cepheus::live
