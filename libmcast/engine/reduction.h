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
// Unit k has slot k mod W, in a ring of sent copies and in a ring of received results. A long
// operation is sent from its own memory, and its results may come straight into its own memory.
// These use the ring: the first W results, because their receives were posted before, and the last W.
//
// So the ring and the memory of operations under way have the last W results, for members that lack
// one after a failure. A receive for unit k + W goes into the slot of result k. It is filled only when
// all members have result k.
//
// Receives are posted in lists of a quarter of W, so contributions follow in lists, too. The last
// one of a list is signaled.
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

  // Where an operation's values are.
  enum class Place : std::uint8_t {
    kSlots,    // its owner copies contributions into slots, and results out of slots
    kInPlace,  // contributions are sent from its memory; results are copied there out of slots
    kApart,    // the same, but results may also come straight into its memory
  };

  // A part of an operation's memory, and its slot.
  struct Part {
    Operation operation = 0;
    std::uint32_t slot = 0;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t imm = 0;   // of the contribution
    std::uint32_t send = 0;  // name of the send, for on_sends_done()
    bool is_last = false;    // of its operation
    bool is_direct = false;  // of a result: it came straight into the operation's memory
  };

  // The place of a result: a slot, or a part of an operation's memory.
  struct Receive {
    std::uint32_t slot = 0;
    bool is_direct = false;
    Operation operation = 0;  // these if it is direct
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };

  // Requests of one list at most.
  static constexpr std::uint32_t kMostListed = 16;
  static constexpr std::uint32_t quarter_of(std::uint32_t window) {
    return std::max<std::uint32_t>(1, window / 4);
  }
  // Sends under way at most: those of a window, and a list that is not known to be done.
  static constexpr std::uint32_t most_sends(std::uint32_t window) {
    return window + quarter_of(window);
  }

  // Once the group is active. `unit` is at most the group's path MTU. The registration has refused
  // units and windows that are not valid.
  ReductionUnits(std::uint16_t epoch, std::uint16_t unit, std::uint16_t window)
      : epoch_(epoch), unit_(unit), window_(window) {
    assert((wire::MrpReduction{wire::MrpReduction::kValues, unit, window}.is_valid()));
  }

  std::uint16_t window() const { return window_; }
  std::uint16_t unit_bytes() const { return unit_; }
  // All contributions of an operation may follow at once: it waits for no other operation, no result,
  // and no slot.
  bool may_send_at_once(std::uint64_t bytes) const {
    return contributed_ == end_ &&
           end_ + units_of(bytes) <= std::min(sends_done_ + window_, receives_);
  }
  // Begins an operation behind all others. All members begin the same ones in the same order.
  // `bytes`: whole values. Its results' memory is apart from all memory that is sent from.
  void start(Operation operation, const Kind& kind, std::uint64_t bytes,
             Place place = Place::kSlots);
  // Operations without all their results.
  std::size_t operations() const { return operations_.size(); }
  // Units of all operations so far.
  std::uint64_t end() const { return end_; }

  // The next receives are to be posted, as a list.
  bool are_receives_due() const;
  // The place of the next receive: W receives are posted ahead of the results. None: all are posted.
  std::optional<Receive> next_receive() const;
  void on_receive_posted();

  // Contributions of a list at most.
  std::uint32_t most_listed() const { return std::min(quarter_of(window_), kMostListed); }
  // The next contribution, which the owner sends from its slot or from the operation's memory. None:
  // there is no operation, credit, receive or slot for it.
  std::optional<Part> next_contribution() const;
  void on_contributed();
  // This send and all before it are done. Their memory may be used again. Custody, and nothing more.
  void on_sends_done(std::uint32_t send) { sends_done_ += sends_until(send); }
  std::uint32_t sends_until(std::uint32_t send) const {
    return ((send - static_cast<std::uint32_t>(sends_done_)) & (2u * window_ - 1)) + 1;
  }
  // Contributions that no device reads any more.
  std::uint64_t sends_done() const { return sends_done_; }
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
    bool has_slots;
    std::uint64_t direct_from, direct_to;  // units with results straight into its memory
  };
  // Units hold whole values of every type.
  std::uint64_t units_of(std::uint64_t bytes) const {
    return bytes == 0 ? 1 : (bytes + unit_ - 1) / unit_;
  }
  std::uint64_t end_of(const Pending& pending) const {
    return pending.first + units_of(pending.bytes);
  }
  void find_receiving();
  Part part_of(const Pending& pending, std::uint64_t unit) const;
  std::uint32_t slot_of(std::uint64_t unit) const {
    return static_cast<std::uint32_t>(unit & (window_ - 1u));
  }

  const std::uint16_t epoch_, unit_, window_;
  std::deque<Pending> operations_;  // from that of the next result on
  std::size_t sending_ = 0;         // that of the next contribution, in `operations_`
  std::size_t receiving_ = 0;       // that of the next receive; their number: none
  std::uint64_t end_ = 0;           // units of all operations
  std::uint64_t contributed_ = 0, sends_done_ = 0, receives_ = 0, results_ = 0;
};

}  // namespace cepheus::mcast
