// libmcast calls done() inside any thread's progress, so an operation's state is atomic. A start that
// libmcast refuses for now leaves it idle. One that it refuses for good leaves it idle, too: then the
// lane shows the failure.
#include "collectives/group/reduction_group.h"

#include <algorithm>
#include <mutex>

#include "wire/situation.h"

namespace cepheus::coll {

void ReductionGroup::done(mcast_op_t* operation, mcast_status_t status, std::size_t length,
                          std::uint32_t) {
  auto& own = *static_cast<Operation*>(operation->user);
  own.final_length = length;
  own.state = status == MCAST_OK ? State::kHere : State::kFailed;
}

template <typename Start>
bool ReductionGroup::start_next(Start start) {
  if (started_ - taken_ == kMostUnderWay) return false;
  const std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  Operation& next = operation(started_);
  next.op = {done, &next};
  next.state = State::kRunning;
  refused_ = start(&next.op);
  if (refused_ < 0) {
    next.state = State::kIdle;
    return false;
  }
  ++started_;
  return true;
}

bool ReductionGroup::start(const Block& block, std::byte* result, std::size_t length) {
  return start_next([&](mcast_op_t* op) {
    return length == 0 ? mcast_barrier(lane_.group(), op)
                       : mcast_gather(lane_.group(), block.data, block.length, block.offset, result,
                                      length, op);
  });
}

// The codes of both libraries are those of packets.
bool ReductionGroup::start(const std::byte* values, const arithmetic::Combiner& combiner,
                           std::byte* result, std::size_t length) {
  return start_next([&](mcast_op_t* op) {
    return mcast_reduce(lane_.group(), values, nullptr, result, nullptr, length / combiner.size(),
                        static_cast<mcast_reduction_t>(combiner.operation()),
                        static_cast<mcast_type_t>(combiner.type()), op);
  });
}

std::optional<std::size_t> ReductionGroup::take_result() {
  Operation& oldest = operation(taken_);
  if (taken_ == started_ || oldest.state != State::kHere) return std::nullopt;
  oldest.state = State::kIdle;
  ++taken_;
  taken_bytes_ += oldest.final_length;
  return oldest.final_length;
}

std::size_t ReductionGroup::bytes_under_way() const {
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  if (lane_.group() == nullptr || mcast_group_query(lane_.group(), &attr) != MCAST_OK) return 0;
  return static_cast<std::size_t>(attr.bytes_received - taken_bytes_);
}

bool ReductionGroup::has_failed(Cause& cause, std::string& reason) const {
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  if (lane_.state() != TeamLane::State::kReady || !lane_.has_failed(attr)) return false;
  cause = cause_of(attr.cause);
  reason = rank_text(team_) + ": " + attr.reason;
  return true;
}

void ReductionGroup::stop(const std::string& reason) {
  drain_time_.begin();
  lane_.stop(reason.c_str());
}

bool ReductionGroup::is_drained() {
  if (std::ranges::none_of(operations_,
                           [](const Operation& each) { return each.state == State::kRunning; }))
    return true;
  if (!drain_time_.is_over()) return false;
  CEPHEUS_RARE_SITUATION("a device does not return the work of a reduction in time");
  return true;
}

// done() runs.
void ReductionGroup::destroy() { lane_.destroy(); }

std::size_t ReductionGroup::part_bytes() const {
  return taken_ == started_ ? 0 : operation(taken_).final_length;
}

}  // namespace cepheus::coll
