// Reductions (docs/protocol.md, "Reductions"). engine/reduction.h has the units and the credit.
//
//   slab:  | contributions 0 ... W-1 | results 0 ... W-1 |   each as long as the device's path MTU
//
// A short operation starts only if all its units may be sent at once. Each contribution is copied
// into a slot of its own, and each result out of one. So its contribution is free when the call
// returns, and may be in the memory of its result. The slot keeps it until the result has come.
//
// A long operation is sent from the caller's memory, unit by unit. Results come straight into the
// caller's memory, if that is not the contribution's; some are copied out of slots
// (ReductionUnits::Place). It ends when it has its result and the device has done with its memory.
//
// In place, a result is copied over its contribution when its completion is taken. The device may
// still repeat that contribution, because its acknowledgement was lost. The switch does not add a
// repeat, and it has stored the contribution: else there were no result. Contributions without a
// completed result are as the caller wrote them, for another way to reduce them after a failure: a
// device may have placed a result, and then flush its completion.
#pragma once

#include <mcast/reduce.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmcast/bulk_lane.h"
#include "libmcast/engine/reduction.h"
#include "libmcast/lane.h"
#include "libmcast/memory.h"

namespace cepheus::mcast {

class ReductionLane final : public Lane {
 public:
  // A member's bytes in an operation's result; the others are zeros.
  struct Block {
    const void* data = nullptr;
    std::size_t length = 0;
    std::size_t offset = 0;
  };

  // `group`: its number. All receives are posted.
  static Expected<std::unique_ptr<ReductionLane>> create(const Device& device, PostedWork& work,
                                                         QueuePair& pair, MemoryBudget& budget,
                                                         std::uint32_t group,
                                                         const wire::MrpReduction& reduction);

  // The queue pair is about to be connected: the group's path MTU is known.
  void begin(std::uint16_t epoch);
  bool has_floating_sums() const { return reduction_.kind == wire::MrpReduction::kOrdered; }
  // A reduction of this many bytes: its packets don't fit into the slots, or into a queue on the way.
  bool is_long(std::size_t length) const;
  // MCAST_ERR_INVALID: a result is longer than MCAST_REDUCTION_PACKETS units.
  Expected<void> check_length(std::size_t length) const;
  // A short operation, once the group is active. MCAST_ERR_AGAIN: the window is full. Preconditions:
  // the block is inside of `length`, which check_length() has passed.
  Expected<void> start(const ReductionUnits::Kind& kind, const Block& block, void* result,
                       std::size_t length, mcast_op_t* op);
  // The same for a long one, of `contribution.length()` bytes. In place, `result` has no bytes. If a
  // buffer lacks a region nothing starts: the caller registers it without the state lock, then calls
  // again. MCAST_ERR_AGAIN: as many operations as the window has units are under way.
  Expected<void> start_long(const ReductionUnits::Kind& kind, Buffer& contribution, Buffer& result,
                            mcast_op_t* op);

  void on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) override;
  std::string_view fault() const override { return fault_; }
  void cancel(mcast_status_t status, Events& out) override;
  std::size_t max_message() const override;
  std::size_t sent_length(std::uint32_t send) const override {
    return std::size_t{units_->sends_until(send)} * work_.path_mtu();
  }
  unsigned sends_of(std::uint32_t send) const override { return units_->sends_until(send); }

 private:
  // A short one has no contribution here: it is in the slots.
  struct Operation {
    mcast_op_t* op = nullptr;
    std::size_t length = 0;
    Piece contribution, result;  // without a key, results are copied from slots
    std::uint64_t end = 0;       // behind its last unit
    bool has_result = false;
    MrHandle contribution_region = {}, result_region = {};

    bool is_long() const { return contribution.address != nullptr; }
  };

  ReductionLane(const Device& device, PostedWork& work, QueuePair& pair, std::uint32_t group,
                const wire::MrpReduction& reduction, std::unique_ptr<Slab> slab);
  std::byte* contribution_slot(std::uint32_t slot) const;
  std::byte* result_slot(std::uint32_t slot) const;
  Piece receive_buffer(std::uint32_t slot) const override {
    return {result_slot(slot), reduction_.unit, slab_->lkey()};
  }
  // Operations are named by the order of their start.
  Operation& operation(std::uint64_t name) { return operations_[name - ended_]; }
  Piece copy_to_slot(const ReductionUnits::Part& part, const Block& block) const;
  // `has_window`: the window has been checked. False: the device refuses a request.
  template <typename PieceOf>
  bool send_due(bool has_window, PieceOf piece_of);
  bool send_due_of_long();
  bool post_due_receives();
  void go_on();
  void take_result(const ibv_wc& wc);
  void end_operations(Events& out);
  void end_oldest(mcast_status_t status, Events& out);

  const Device& device_;
  const wire::MrpReduction reduction_;  // its unit: a slot's size
  const std::unique_ptr<Slab> slab_;
  std::optional<ReductionUnits> units_;  // from begin() on
  std::deque<Operation> operations_;     // in the order of their start, which is that of their end
  std::uint64_t ended_ = 0;              // operations
  std::vector<QueuePair::Request> list_;
  mcast_status_t failed_ = MCAST_OK;  // else the status of operations: no further result comes
  std::string fault_;                 // no result is taken any more
};

}  // namespace cepheus::mcast
