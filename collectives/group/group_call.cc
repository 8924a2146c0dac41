// Operations that are cut into the same packets are the same to other members. So each member chooses by
// itself: short operations, which libmcast copies, or long ones in memory that it registers.
#include "collectives/group/group_call.h"

#include <algorithm>
#include <utility>

#include "collectives/core/parameters.h"

namespace cepheus::coll {

void GroupCall::renew(std::size_t most, std::size_t packet) {
  most_ = most;
  packet_ = std::max<std::size_t>(packet, 1);
  first_unit_ = started_ = 0;
  has_memory_ = true;
  kept_.clear();
}

void GroupCall::begin(const CallUnits& call, std::uint64_t first_unit) {
  call_ = call;
  first_unit_ = started_ = first_unit;
}

std::uint64_t GroupCall::start(ReductionGroup& group) {
  if (started_ == end_unit()) return started_;
  if (call_.is_of_values())
    start_values(group);
  else
    start_gather(group);
  return started_;
}

void GroupCall::start_gather(ReductionGroup& group) {
  const std::size_t bytes = fits() ? call_.total : 0;
  if (group.start(call_.block, kept_.prepare(bytes), bytes)) ++started_;
}

void GroupCall::start_values(ReductionGroup& group) {
  while (started_ < end_unit()) {
    const bool is_registered = has_memory_ && call_.total >= parameters().least_registered;
    const std::uint64_t most = is_registered ? kMostBytes / packet_ : short_units();
    const std::uint64_t end = std::min(started_ + most, end_unit());
    const std::size_t first = bytes_before(started_);
    if (group.start(call_.values + first, *call_.combiner, call_.result + first,
                    bytes_of(started_, end))) {
      started_ = end;
      continue;
    }
    // Those under way may have used up the limit.
    if (!group.lacks_memory() || group.is_busy() || !std::exchange(has_memory_, false)) return;
    host::log(1,
              "cepheus: %s: the device can't register the memory of long reductions, so they are "
              "copied: raise ulimit -l",
              rank_text(team_).c_str());
  }
}

std::size_t GroupCall::bytes_of(std::uint64_t first, std::uint64_t end) const {
  if (!call_.is_of_values()) return first < end && fits() ? call_.total : 0;
  return bytes_before(end) - bytes_before(first);
}

void GroupCall::put(std::uint64_t first, std::span<const std::byte> results) {
  std::byte* const place =
      call_.is_of_values() ? call_.result + bytes_before(first) : kept_.prepare(results.size());
  std::ranges::copy(results, place);
}

void GroupCall::keep(std::uint64_t first, std::uint64_t end) {
  if (!call_.is_of_values()) return kept_.keep_gather(first_unit_);
  const std::uint64_t from = std::max(first_unit_, first);
  kept_.keep(from, end, {call_.result + bytes_before(from), bytes_of(from, end)}, packet_);
}

}  // namespace cepheus::coll
