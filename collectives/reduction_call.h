// The arguments of a reduction as a host has them, and what the host keeps for it until its end.
// `Type` and `Op` are the host's datatypes and operations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "collectives/reduction.h"

namespace cepheus::coll {

// Elements of the program's memory.
template <typename Type>
struct Elements {
  void* memory = nullptr;
  std::size_t count = 0;
  Type type{};
};

// With MPI_IN_PLACE the contribution lies in the result's memory.
template <typename Type, typename Op>
struct ReductionCall {
  ReductionShape shape{Collective::kBarrier, 0};
  Elements<Type> contribution, result;
  bool has_result = false;  // on this rank
  Op op{};
  // Of a call that can't be done. It takes part all the same, so that all ranks keep one order of
  // calls.
  Code error = Code::kDone;
  // If the library has `op` on this type. Then the host's operation is not applied.
  std::optional<arithmetic::Combiner> combiner{};

  bool has_operator() const {
    return shape.collective == Collective::kAllreduce || shape.collective == Collective::kReduce;
  }
};

// The bounds of a type as MPI counts them, and the true ones, of its data.
struct Bounds {
  std::ptrdiff_t lower = 0, extent = 0, true_lower = 0, true_extent = 0;

  // The first byte of `count` elements, and the end of the last one, from the address of the first.
  // A user's operation may assign whole elements, so their gaps count.
  std::ptrdiff_t begin(std::size_t count) const {
    return std::min(lower, true_lower) + std::min(last(count), std::ptrdiff_t{0});
  }
  std::ptrdiff_t end(std::size_t count) const {
    return std::max(lower + extent, true_lower + true_extent) +
           std::max(last(count), std::ptrdiff_t{0});
  }

  // Without the gaps at the ends of an element.
  Bounds without_ends(std::size_t count) const {
    return {true_lower, count == 1 ? true_extent : extent, true_lower, true_extent};
  }

 private:
  std::ptrdiff_t last(std::size_t count) const {
    return static_cast<std::ptrdiff_t>(count - 1) * extent;
  }
};

// The memory for elements of a type with gaps. origin() is aligned as the program's own
// elements may be.
class OperandMemory {
 public:
  // False: there is no memory. Bytes stay undefined: gaps may be much larger than the data.
  bool reserve(std::size_t count, const Bounds& bounds) {
    constexpr std::ptrdiff_t kAlignment = alignof(std::max_align_t);
    // Bounds that are so far from the data hold no element, as 0 of a type with absolute addresses.
    constexpr std::ptrdiff_t kMost = std::ptrdiff_t{1} << 40;
    if (bounds.end(count) - bounds.begin(count) > kMost && bounds.lower != bounds.true_lower)
      return reserve(count, bounds.without_ends(count));
    count_ = 0;
    const std::ptrdiff_t low = bounds.begin(count);
    const std::ptrdiff_t before = ((low % kAlignment) + kAlignment) % kAlignment;
    const auto bytes = static_cast<std::size_t>(bounds.end(count) - low + before);
    memory_.reset(new (std::nothrow) std::byte[bytes]);
    // As a number: it may lie outside the memory.
    origin_ = reinterpret_cast<std::intptr_t>(memory_.get()) + before - low;
    if (memory_ != nullptr) count_ = count;
    return memory_ != nullptr;
  }
  // ... of this number of elements.
  bool has(std::size_t count) const { return count <= count_; }
  void* origin() const { return reinterpret_cast<void*>(origin_); }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t count_ = 0;
  std::intptr_t origin_ = 0;
};

// `Buffer` makes a Payload of Elements, `Operation` is an Operator for an operation and Elements.
template <typename Call, typename Buffer, typename Operation>
class ReductionMemory {
 public:
  explicit ReductionMemory(const Call& call) {
    if (call.shape.collective == Collective::kBarrier) return;
    contribution_.emplace(call.contribution);
    if (call.has_result) result_.emplace(call.result);
    combiner_ = call.combiner;
    if (call.has_operator() && !combiner_) operation_.emplace(call.op, call.contribution);
  }

  // It refers to this object.
  ReductionData data() {
    ReductionData data;
    if (contribution_) data.contribution = contribution_->payload();
    if (result_) data.result = result_->payload();
    if (operation_) data.op = &*operation_;
    data.combiner = combiner_;
    return data;
  }
  // Runs `hold` with each part, so that the program may free its types and its operation.
  template <typename Hold>
  void hold(Hold hold) {
    if (contribution_) hold(*contribution_);
    if (result_) hold(*result_);
    if (operation_) hold(*operation_);
  }

 private:
  std::optional<Buffer> contribution_, result_;
  std::optional<Operation> operation_;
  std::optional<arithmetic::Combiner> combiner_;
};

}  // namespace cepheus::coll
