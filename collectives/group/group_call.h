// One call after the other as operations of its group: a gather is one operation, and so are many values,
// or each kMostBytes of them. Few values are several short ones. It starts operations, and keeps results
// that other members may lack.
//
// A gather's result arrives in memory of this object. Values go straight between the call's buffers, and
// their last results are copied when the call ends here, or its group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/group/call_units.h"
#include "collectives/group/kept_results.h"
#include "collectives/group/reduction_group.h"
#include "collectives/group/sum_order.h"

namespace cepheus::coll {

class GroupCall {
 public:
  explicit GroupCall(const Team& team) : team_(team) {}

  // Units count from 0 again, in a group with these bytes of the longest gather and of a packet.
  void renew(std::size_t most, std::size_t packet);
  void begin(const CallUnits& call, std::uint64_t first_unit);

  // It has values in pairs that the group does not have, and so no operation but a barrier.
  void have_pairs(const GroupSums& sums) {
    call_.has_pairs = !call_.combiner || sums.may_serve(*call_.combiner);
  }
  bool has_pairs() const { return call_.has_pairs; }
  // Nor if it is too long.
  bool fits() const { return call_.fits(most_); }
  std::uint64_t first_unit() const { return first_unit_; }
  std::uint64_t end_unit() const { return first_unit_ + call_.count(packet_); }
  // Starts all operations that the group admits now. The first unit that they do not have.
  std::uint64_t start(ReductionGroup& group);
  // Units of a complete operation of this many bytes.
  std::uint64_t units_of(std::size_t bytes) const { return call_.count_of(bytes, packet_); }
  // ... and those whose results are in so many bytes at its start.
  std::uint64_t units_within(std::size_t bytes) const {
    return call_.is_of_values() ? bytes / packet_ : 0;
  }
  // Bytes of the results of these units.
  std::size_t bytes_of(std::uint64_t first, std::uint64_t end) const;
  // Puts another member's results of these units into their place.
  void put(std::uint64_t first, std::span<const std::byte> results);
  // All results before `end` are here, the call's last one among them, or no more come from the group.
  // Keeps those from `first` on.
  void keep(std::uint64_t first, std::uint64_t end);

  const KeptResults& kept() const { return kept_; }
  // The last gather's result.
  const std::byte* gather() const { return kept_.gather(); }

 private:
  // Memory is registered for each operation.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  std::size_t bytes_before(std::uint64_t unit) const {
    return call_.bytes(static_cast<std::size_t>(unit - first_unit_), packet_);
  }
  // Packets of a short operation at most, on all members.
  std::uint64_t short_units() const { return std::max<std::uint64_t>(most_ / packet_, 1); }
  void start_gather(ReductionGroup& group);
  void start_values(ReductionGroup& group);

  const Team& team_;
  std::size_t most_ = 0, packet_ = 1;
  CallUnits call_{};
  std::uint64_t first_unit_ = 0;
  std::uint64_t started_ = 0;  // the first unit without an operation
  bool has_memory_ = true;     // the device registers that of long operations
  KeptResults kept_;
};

}  // namespace cepheus::coll
