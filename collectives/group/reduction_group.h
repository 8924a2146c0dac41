// One member's end of a group that reduces, and its operations under way: gathers, which bring the
// members' blocks together, and reductions of values. They end in the order of their start.
//
// All calls are under the communicator's guard.
#pragma once

#include <mcast/reduce.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

#include "arithmetic/combine.h"
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
  static constexpr std::size_t kMostUnderWay = 8;  // operations

  // `again`: the fabric may serve now though it did not before. `adds_floats`: see TeamLane.
  ReductionGroup(const Team& team, bool again, bool adds_floats)
      : team_(team), lane_(team, MCAST_LANE_REDUCTION, 0, again) {
    if (adds_floats) lane_.add_floats();
  }
  ~ReductionGroup() { destroy(); }
  ReductionGroup(const ReductionGroup&) = delete;
  ReductionGroup& operator=(const ReductionGroup&) = delete;

  TeamLane& lane() { return lane_; }

  // --- Once the lane is ready.
  // Starts the next operation. False: the group is full for now, or has failed. `result` has `length`
  // bytes, and stays until the operation is over, or until destroy().
  bool start(const Block& block, std::byte* result, std::size_t length);
  // ... which reduces `length` bytes of values.
  bool start(const std::byte* values, const arithmetic::Combiner& combiner, std::byte* result,
             std::size_t length);
  // The result of the oldest operation under way is here. True once; then it is over.
  bool take_result();
  // True if the group has failed, for `reason`.
  bool has_failed(Cause& cause, std::string& reason) const;
  // Takes this member out of the group.
  void stop(const std::string& reason);
  // After stop(): no operation is under way, or they can't be waited for any longer; a device that died
  // returns no work.
  bool is_drained();
  // Local: the group and its operations are gone.
  void destroy();

 private:
  enum class State : std::uint8_t { kIdle, kRunning, kHere, kFailed };
  struct Operation {
    mcast_op_t op{};
    std::atomic<State> state = State::kIdle;  // set by progress of any thread
  };
  static void done(mcast_op_t* operation, mcast_status_t status, std::size_t length, std::uint32_t);
  Operation& operation(std::uint64_t number) { return operations_[number % kMostUnderWay]; }
  template <typename Start>
  bool start_next(Start start);

  const Team& team_;
  TeamLane lane_;
  std::array<Operation, kMostUnderWay> operations_;
  std::uint64_t started_ = 0, taken_ = 0;  // operations
  DrainTime drain_time_;
};

}  // namespace cepheus::coll
