#include "switch-emulator/engine/reduction/ordered_sums.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "arithmetic/arrivals.h"

namespace cepheus::fabric {

using arithmetic::Arrivals;

// A unit's partial sums, and the operand that has come.
class OrderedSums::Partials {
 public:
  Partials(std::uint8_t* first, std::uint8_t* others, std::size_t stride,
           std::span<const std::uint8_t> operand, const arithmetic::Batch& batch)
      : first_(first), others_(others), stride_(stride), operand_(operand), batch_(batch) {}

  void store(std::size_t partial) { std::memcpy(at(partial), operand_.data(), operand_.size()); }
  void add(std::size_t partial) { batch_.combine(at(partial), operand_.data(), operand_.size()); }
  void combine(std::size_t left, std::size_t right) {
    batch_.combine(at(left), at(right), operand_.size());
  }

 private:
  std::uint8_t* at(std::size_t partial) const {
    return partial == 0 ? first_ : others_ + (partial - 1) * stride_;
  }

  std::uint8_t* const first_;
  std::uint8_t* const others_;
  const std::size_t stride_;
  const std::span<const std::uint8_t> operand_;
  const arithmetic::Batch& batch_;
};

std::size_t OrderedSums::bytes_for(const wire::MrpReduction& group, std::size_t paths) {
  if (group.kind != wire::MrpReduction::kOrdered || paths == 0) return 0;
  const std::size_t partials = Arrivals::slots_for(paths);
  return group.window * (partials + (partials - 1) * slot_bytes(group.unit));
}

void OrderedSums::set_order(SumOrder order) {
  assert(order.children > 0);
  order_ = std::move(order);
  const std::size_t partials = Arrivals::slots_for(order_.children);
  memory_.reset(new std::uint8_t[group_.window * (partials - 1) * slot_bytes(group_.unit)]);
  steps_.assign(group_.window * partials, 0);
}

void OrderedSums::add(const Unit& unit, PathNo path, std::span<const std::uint8_t> data,
                      const arithmetic::Combiner& combiner) {
  assert(order_.places[path] < order_.children);
  const std::size_t partials = Arrivals::slots_for(order_.children);
  const std::size_t stride = slot_bytes(group_.unit);
  Arrivals arrivals(order_.children, std::span(steps_).subspan(unit.slot * partials, partials));
  if (unit.is_new) arrivals.begin();
  const arithmetic::Batch batch(combiner);
  Partials memory(unit.first, memory_.get() + unit.slot * (partials - 1) * stride, stride, data,
                  batch);
  arrivals.add(order_.places[path], memory);
}

}  // namespace cepheus::fabric
