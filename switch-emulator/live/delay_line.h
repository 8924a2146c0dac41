// Frames on their way: a priority queue by arrival time, first in first out among equals, of
// bounded size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "switch-emulator/ports/sender_shares.h"
#include "wire/frame.h"
#include "wire/types.h"

namespace cepheus::live {

// On whose account a frame is on its way.
struct Origin {
  fabric::SenderNo host = fabric::kFabricItself;
  bool is_stray = false;  // nobody has paid for it (stray_account.h)
};

struct Flight {
  wire::Frame frame;
  std::uint32_t link = 0;  // index of the link that carries it
  Origin origin;
  bool corrupt = false;  // a bit was turned over on the way
};

class DelayLine {
 public:
  explicit DelayLine(std::size_t capacity) : capacity_(capacity) {}

  bool is_full() const { return order_.size() == capacity_; }
  bool is_empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }
  wire::Instant next_arrival() const {
    return order_.empty() ? wire::kNever : order_.front().arrival;
  }

  // Precondition: !is_full().
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

  // Precondition: !is_empty().
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

  std::size_t capacity_;
  std::uint64_t sequence_ = 0;
  std::vector<Entry> order_;     // heap, earliest in front
  std::vector<Flight> flights_;  // grows to the largest number ever under way
  std::vector<std::uint32_t> free_;
};

}  // namespace cepheus::live
