// Links by the time of their next transmission: a heap, in which a link's older entries stay until
// they come to the front.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "wire/types.h"

namespace cepheus::live {

class DueLinks {
 public:
  struct Entry {
    wire::Instant at = wire::kNever;  // kNever: none is due
    std::uint32_t link = 0;
  };

  void resize(std::size_t links) { due_.resize(links, wire::kNever); }
  // The link's next transmission; kNever: none.
  void set(std::uint32_t link, wire::Instant at) {
    if (due_[link] == at) return;
    due_[link] = at;
    if (at == wire::kNever) return;
    heap_.push_back({at, link});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  // The first of all; among equals, that of the lowest link.
  Entry next() {
    while (!heap_.empty() && due_[heap_.front().link] != heap_.front().at) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
    }
    return heap_.empty() ? Entry() : heap_.front();
  }
  // Not after the time of next().
  wire::Instant earliest() const { return heap_.empty() ? wire::kNever : heap_.front().at; }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return std::tie(a.at, a.link) > std::tie(b.at, b.link);
  }

  std::vector<Entry> heap_;
  std::vector<wire::Instant> due_;  // by link
};

}  // namespace cepheus::live
