// One member's end of a group that reduces, and its gather under way: the members' blocks, brought
// together in the network. One at a time.
//
// All calls are under the communicator's guard.
#pragma once

#include <mcast/reduce.h>

#include <atomic>
#include <cstddef>
#include <string>

#include "collectives/group/drain_time.h"
#include "collectives/group/team_lane.h"

namespace cepheus::coll {

// A member's part of a result: `length` bytes at `offset`. Members' blocks do not overlap.
struct Block {
  const std::byte* data;
  std::size_t length, offset;
};

class ReductionGroup {
 public:
  // `again`: the fabric may serve now though it did not before.
  ReductionGroup(const Team& team, bool again)
      : team_(team), lane_(team, MCAST_LANE_REDUCTION, 0, again) {}
  ~ReductionGroup() { destroy(); }
  ReductionGroup(const ReductionGroup&) = delete;
  ReductionGroup& operator=(const ReductionGroup&) = delete;

  TeamLane& lane() { return lane_; }

  // --- Once the lane is ready.
  // Starts the next gather, unless the group is full for now or has failed. `result` has room for
  // `length` bytes, and stays until is_idle() or destroy().
  void start(const Block& block, std::byte* result, std::size_t length);
  // No gather is under way.
  bool is_idle() const { return state_ == State::kIdle; }
  // The result of the gather under way is here. True once; then it is over.
  bool take_result();
  // True if the group has failed, for `reason`.
  bool has_failed(Cause& cause, std::string& reason) const;
  // Takes this member out of the group.
  void stop(const std::string& reason);
  // After stop(): the gather under way is over, or can't be waited for any longer; a device that died
  // returns no work.
  bool is_drained();
  // Local: the group and its gather are gone.
  void destroy();

 private:
  enum class State : std::uint8_t { kIdle, kRunning, kHere, kFailed };
  static void done(mcast_op_t* operation, mcast_status_t status, std::size_t length, std::uint32_t);

  const Team& team_;
  TeamLane lane_;
  mcast_op_t operation_{};
  std::atomic<State> state_ = State::kIdle;  // set by progress of any thread
  DrainTime drain_time_;
};

}  // namespace cepheus::coll
