// A member's part in a reduction group: the units of its operations, credit, and completion
// (docs/protocol.md, "Reductions").
//
//   results()               contributed()           posted receives
//   ...|........................|.......................|...
//      results are missing      contributions may       W ahead of the results
//                               follow
//
// A receive is posted only once unit k - W has its result: receives are a member's credit.
//
// Unit k has slot k mod W, in a ring of sent copies and in a ring of received results. A receive for
// unit k + W goes into the slot of result k. It is filled only when all members have result k, so the
// ring also keeps the last W results for members that lack one after a failure.
//
// No I/O: the owner posts, copies and completes what this object returns. One thread at a time.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <optional>

#include "arithmetic/operation.h"
#include "wire/mrp.h"
#include "wire/reduction.h"
#include "wire/result.h"

namespace cepheus::mcast {

class ReductionUnits {
 public:
  // The owner's name of an operation.
  using Operation = std::uint64_t;

  // Without values: a barrier.
  struct Kind {
    arithmetic::Operation operation = arithmetic::Operation::kNone;
    arithmetic::Type type = arithmetic::Type::kUint8;
  };
  // Of plain bytes, as in a gather.
  static constexpr Kind kOr{arithmetic::Operation::kBitOr, arithmetic::Type::kUint8};

  // A part of an operation's memory, and its slot.
  struct Part {
    Operation operation = 0;
    std::uint32_t slot = 0;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t imm = 0;  // of the contribution
    bool is_last = false;   // of its operation
  };

  // Once the group is active. `unit` is at most the group's path MTU. The registration has refused
  // units and windows that are not valid.
  ReductionUnits(std::uint16_t epoch, std::uint16_t unit, std::uint16_t window)
      : epoch_(epoch), unit_(unit), window_(window) {
    assert((wire::MrpReduction{wire::MrpReduction::kValues, unit, window}.is_valid()));
  }

  std::uint16_t window() const { return window_; }
  std::uint16_t unit_bytes() const { return unit_; }
  // All contributions of an operation may follow at once: it waits for no result, and no slot.
  bool may_send_at_once(std::uint64_t bytes) const {
    return end_ + units_of(bytes) <= std::min(sends_done_ + window_, receives_);
  }
  // Begins an operation behind all others. All members begin the same ones in the same order.
  // `bytes`: whole values.
  void start(Operation operation, const Kind& kind, std::uint64_t bytes);
  // Operations without all their results.
  std::size_t operations() const { return operations_.size(); }

  // The slot of the next receive: W receives are posted ahead of the results. None: all are posted.
  std::optional<std::uint32_t> next_receive() const;
  void on_receive_posted() {
    assert(receives_ < results_ + window_);
    ++receives_;
  }

  // The next contribution, which the owner copies into its slot and sends. None: there is no
  // operation, credit, receive or slot for it.
  std::optional<Part> next_contribution() const;
  void on_contributed();
  // Custody: the slot may be used again, and nothing more.
  void on_send_done() { ++sends_done_; }
  // A simulator leaves out this many units, while no operation is under way. Whole windows, so that
  // the posted receives keep their slots.
  void jump(std::uint64_t units) {
    for (std::uint64_t* each : {&end_, &contributed_, &sends_done_, &receives_, &results_}) {
      *each += units;
    }
  }

  // A result has come, with this immediate data and length, into the slot of the next one. The owner
  // copies it to its operation. Error: the packet is not what this member waits for.
  wire::Result<Part> on_result(std::uint32_t imm, std::uint32_t bytes);

  // Units with a result, and contributions.
  std::uint64_t results() const { return results_; }
  std::uint64_t contributed() const { return contributed_; }
  // No receive is posted for the next contribution: it has no credit, or the owner is to post one.
  bool needs_receive() const { return contributed_ == receives_; }

 private:
  struct Pending {
    Operation name;
    Kind kind;
    std::uint64_t first;  // unit
    std::uint64_t bytes;
  };
  // Units hold whole values of every type.
  std::uint64_t units_of(std::uint64_t bytes) const {
    return bytes == 0 ? 1 : (bytes + unit_ - 1) / unit_;
  }
  Part part_of(const Pending& pending, std::uint64_t unit) const;
  std::uint32_t slot_of(std::uint64_t unit) const {
    return static_cast<std::uint32_t>(unit & (window_ - 1u));
  }

  const std::uint16_t epoch_, unit_, window_;
  std::deque<Pending> operations_;  // from that of the next result on
  std::size_t sending_ = 0;         // that of the next contribution, in `operations_`
  std::uint64_t end_ = 0;           // units of all operations
  std::uint64_t contributed_ = 0, sends_done_ = 0, receives_ = 0, results_ = 0;
};

}  // namespace cepheus::mcast
