// Results that other members may lack after a failure: the last units of one call. A result proves that
// all members have begun its call, and so have ended the call before it. So no member lacks units of
// two calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cepheus::coll {

class KeptResults {
 public:
  // None of this group.
  void clear() { first_ = end_ = 0; }
  // Memory for the result of a gather under way. It stays until keep_gather().
  std::byte* prepare(std::size_t bytes) {
    incoming_.resize(bytes);
    return incoming_.data();
  }
  // That one is here, and is this unit.
  void keep_gather(std::uint64_t unit) {
    kept_.swap(incoming_);
    first_ = unit;
    end_ = unit + 1;
    unit_bytes_ = kept_.size();
  }
  // Copies the results of [first, end), of `unit_bytes` each. The last one may be shorter.
  void keep(std::uint64_t first, std::uint64_t end, std::span<const std::byte> results,
            std::size_t unit_bytes) {
    kept_.assign(results.begin(), results.end());
    first_ = first;
    end_ = end;
    unit_bytes_ = unit_bytes;
  }

  bool has(std::uint64_t first, std::uint64_t end) const { return first >= first_ && end <= end_; }
  // Appends these, which it has.
  void append_to(std::vector<std::byte>& message, std::uint64_t first, std::uint64_t end) const {
    const auto at = [&](std::uint64_t unit) {
      const auto bytes = static_cast<std::size_t>(unit - first_) * unit_bytes_;
      return kept_.begin() + static_cast<std::ptrdiff_t>(std::min(bytes, kept_.size()));
    };
    message.insert(message.end(), at(first), at(end));
  }
  // The last gather's.
  const std::byte* gather() const { return kept_.data(); }

 private:
  std::vector<std::byte> kept_, incoming_;
  std::uint64_t first_ = 0, end_ = 0;  // units
  std::size_t unit_bytes_ = 0;
};

}  // namespace cepheus::coll
