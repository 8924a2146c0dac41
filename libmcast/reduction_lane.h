// Reductions: each contribution is copied into a slot of its own, and each result out of one
// (docs/protocol.md, "Reductions"). engine/reduction.h has the units and the credit.
//
//   slab:  | contributions 0 ... W-1 | results 0 ... W-1 |   each as long as the device's path MTU
//
// An operation starts only if all its units may be sent at once. So its contribution is free when
// the call returns, and may be in the memory of its result. The slot keeps it until the result has
// come: a device may have placed a result whose completion is flushed.
#pragma once

#include <mcast/reduce.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
  // MCAST_ERR_INVALID: longer than MCAST_REDUCTION_PACKETS units.
  Expected<void> check_length(std::size_t length) const;
  // Once the group is active. MCAST_ERR_AGAIN: the window is full. Preconditions: the block is
  // inside of `length`, which check_length() has passed.
  Expected<void> start(const ReductionUnits::Kind& kind, const Block& block, void* result,
                       std::size_t length, mcast_op_t* op);

  void on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) override;
  std::string_view fault() const override { return fault_; }
  void cancel(mcast_status_t status, Events& out) override;
  std::size_t max_message() const override;
  std::size_t sent_length(std::uint32_t) const override { return 0; }  // one packet

 private:
  struct Operation {
    mcast_op_t* op;
    std::byte* result;
    std::size_t length;
  };

  ReductionLane(PostedWork& work, QueuePair& pair, std::uint32_t group,
                const wire::MrpReduction& reduction, std::unique_ptr<Slab> slab);
  std::byte* contribution_slot(std::uint32_t slot) const;
  std::byte* result_slot(std::uint32_t slot) const;
  Piece receive_buffer(std::uint32_t slot) const override {
    return {result_slot(slot), reduction_.unit, slab_->lkey()};
  }
  bool send(const ReductionUnits::Part& part, const Block& block);
  void take_result(const ibv_wc& wc, mcast_status_t failed, Events& out);

  const wire::MrpReduction reduction_;  // its unit: a slot's size
  const std::unique_ptr<Slab> slab_;
  std::optional<ReductionUnits> units_;  // from begin() on
  std::deque<Operation> operations_;     // in the order of their start, which is that of their end
  std::string fault_;                    // no result is taken any more
};

}  // namespace cepheus::mcast
