// Events of the next few microseconds, which are nearly all: a list for each nanosecond, so that
// adding and removing take constant time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "wire/types.h"

namespace cepheus::sim {

class Actor;

struct Event {
  wire::Instant at;
  std::uint64_t number;  // FIFO among equals
  Actor* actor;
  std::uint64_t what;

  friend bool operator<(const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.number < b.number;
  }
};

class NearEvents {
 public:
  static constexpr std::int64_t kReach = 4096;  // ns

  NearEvents() { slots_.fill({kNone, kNone}); }

  // Precondition: now <= event.at < now + kReach. The same held for all stored events, and none is
  // before `now`.
  void push(const Event& event) {
    const std::size_t slot = slot_of(event.at);
    const std::uint32_t place = take_place();
    nodes_[place] = {event, kNone};
    Slot& list = slots_[slot];
    if (list.first == kNone) {
      list.first = place;
      words_[slot / 64] |= std::uint64_t{1} << slot % 64;
      summary_ |= std::uint64_t{1} << slot / 64;
    } else {
      nodes_[list.last].next = place;
    }
    list.last = place;
  }
  // The first, null if there is none; it stays valid until the next call.
  const Event* front(wire::Instant now) {
    if (summary_ == 0) return nullptr;
    front_ = find(slot_of(now));
    return &nodes_[slots_[front_].first].event;
  }
  // Removes the event that front() returned.
  void pop() {
    const std::uint32_t place = slots_[front_].first;
    const std::uint32_t next = nodes_[place].next;
    slots_[front_].first = next;
    free_.push_back(place);
    if (next != kNone) return fetch_ahead(nodes_[next].event.actor);
    words_[front_ / 64] &= ~(std::uint64_t{1} << front_ % 64);
    if (words_[front_ / 64] == 0) summary_ &= ~(std::uint64_t{1} << front_ / 64);
  }

 private:
  // With hundreds of actors, the next one is seldom in the cache.
  static void fetch_ahead(const Actor* actor) {
    const auto* const lines = reinterpret_cast<const char*>(actor);
    for (int i = 0; i < 4; ++i) __builtin_prefetch(lines + 64 * i);
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kSlots = kReach;
  struct Slot {
    std::uint32_t first, last;
  };
  struct Node {
    Event event;
    std::uint32_t next;
  };

  static std::size_t slot_of(wire::Instant at) {
    return static_cast<std::size_t>(at.time_since_epoch().count()) % kSlots;
  }
  std::uint32_t take_place() {
    if (free_.empty()) {
      nodes_.emplace_back();
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }
  // The first slot in use from `from` on, cyclically. Precondition: there is one.
  std::size_t find(std::size_t from) const {
    const std::size_t word = from / 64;
    const std::uint64_t here = words_[word] & (~std::uint64_t{0} << from % 64);
    if (here != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(here));
    const std::uint64_t behind = word == 63 ? 0 : summary_ & (~std::uint64_t{0} << (word + 1));
    const auto next = static_cast<std::size_t>(std::countr_zero(behind != 0 ? behind : summary_));
    return next * 64 + static_cast<std::size_t>(std::countr_zero(words_[next]));
  }

  std::array<Slot, kSlots> slots_;
  std::array<std::uint64_t, kSlots / 64> words_{};
  std::uint64_t summary_ = 0;  // bit per word that is not 0
  static_assert(kSlots == 64 * 64);
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> free_;
  std::size_t front_ = 0;
};

}  // namespace cepheus::sim
