// libmcast calls done() inside any thread's progress, so an operation's state is atomic. A start that
// libmcast refuses for now leaves it idle. One that it refuses for good leaves it idle, too: then the
// lane shows the failure.
#include "collectives/group/reduction_group.h"

#include <algorithm>
#include <mutex>

#include "wire/situation.h"

namespace cepheus::coll {

void ReductionGroup::done(mcast_op_t* operation, mcast_status_t status, std::size_t,
                          std::uint32_t) {
  static_cast<Operation*>(operation->user)->state =
      status == MCAST_OK ? State::kHere : State::kFailed;
}

template <typename Start>
bool ReductionGroup::start_next(Start start) {
  if (started_ - taken_ == kMostUnderWay) return false;
  const std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  Operation& next = operation(started_);
  next.op = {done, &next};
  next.state = State::kRunning;
  if (start(&next.op) < 0) {
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

bool ReductionGroup::take_result() {
  Operation& oldest = operation(taken_);
  if (taken_ == started_ || oldest.state != State::kHere) return false;
  oldest.state = State::kIdle;
  ++taken_;
  return true;
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

void ReductionGroup::destroy() {
  lane_.destroy();  // done() runs
  for (Operation& each : operations_) each.state = State::kIdle;
  taken_ = started_;
}

}  // namespace cepheus::coll
