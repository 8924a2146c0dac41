// libmcast calls done() inside any thread's progress, so the gather's state is atomic. A start that
// libmcast refuses for now leaves the group idle. One that it refuses for good leaves it idle, too:
// then the lane shows the failure.
#include "collectives/group/reduction_group.h"

#include <mutex>

#include "wire/situation.h"

namespace cepheus::coll {

void ReductionGroup::done(mcast_op_t* operation, mcast_status_t status, std::size_t,
                          std::uint32_t) {
  static_cast<ReductionGroup*>(operation->user)->state_ =
      status == MCAST_OK ? State::kHere : State::kFailed;
}

void ReductionGroup::start(const Block& block, std::byte* result, std::size_t length) {
  const std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  operation_ = {done, this};
  state_ = State::kRunning;
  const mcast_status_t status = length == 0
                                    ? mcast_barrier(lane_.group(), &operation_)
                                    : mcast_gather(lane_.group(), block.data, block.length,
                                                   block.offset, result, length, &operation_);
  if (status < 0) state_ = State::kIdle;
}

bool ReductionGroup::take_result() {
  if (state_ != State::kHere) return false;
  state_ = State::kIdle;
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
  if (state_ != State::kRunning) return true;
  if (!drain_time_.is_over()) return false;
  CEPHEUS_RARE_SITUATION("a device does not return the work of a reduction in time");
  return true;
}

void ReductionGroup::destroy() {
  lane_.destroy();  // done() runs
  state_ = State::kIdle;
}

}  // namespace cepheus::coll
