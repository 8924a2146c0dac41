#include "switch-emulator/engine/reduction/unit_slots.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "arithmetic/combine.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

std::optional<arithmetic::Combiner> combiner_of(const UnitShape& shape) {
  const auto imm = wire::ReductionImm::from_what(shape.what);
  return arithmetic::Combiner::find(imm.operation, imm.type);
}

// GCC 12 makes a loop over bytes of std::ranges::copy.
void copy(std::span<const std::uint8_t> data, std::uint8_t* to) {
  if (!data.empty()) std::memcpy(to, data.data(), data.size());
}

}  // namespace

std::size_t UnitSlots::bytes_for(const wire::MrpReduction& group, std::size_t paths) {
  const std::size_t slot = sizeof(Contribution) + sizeof(UnitShape) + 2 * sizeof(std::uint8_t*);
  return group.window * (2 * slot_bytes(group.unit) + slot) + OrderedSums::bytes_for(group, paths);
}

UnitSlots::UnitSlots(const wire::MrpReduction& group)
    : group_(group),
      memory_(new std::uint8_t[2 * group.window * slot_bytes(group.unit)]()),
      sums_(group.window),
      done_(group.window),
      contributions_(group.window),
      results_(group.window),
      sums_in_order_(group) {
  assert(group.is_valid());
  for (std::size_t i = 0; i < group.window; ++i) {
    sums_[i] = memory_.get() + 2 * i * slot_bytes(group.unit);
    done_[i] = sums_[i] + slot_bytes(group.unit);
  }
}

bool UnitSlots::serves(const UnitShape& shape) const {
  if (shape.what == 0) return shape.bytes == 0;  // a barrier
  const auto combiner = combiner_of(shape);
  return combiner && (has_order() || !combiner->depends_on_pairs()) &&
         shape.bytes % combiner->size() == 0;
}

bool UnitSlots::add(Unit unit, PathNo path, const UnitShape& shape,
                    std::span<const std::uint8_t> data, wire::Instant now) {
  assert(data.size() == shape.bytes && shape.bytes <= group_.unit);
  Contribution& one = contributions_[slot(unit)];
  std::uint8_t* const sum = sums_[slot(unit)];
  const bool is_first = one.unit != unit;
  if (!is_first && one.shape != shape) return false;
  if (is_first) one = {unit, now, 0, path, shape};
  ++one.paths;
  if (data.empty()) return true;
  const auto combiner = combiner_of(shape);
  assert(combiner);
  if (combiner->depends_on_pairs() && sums_in_order_.is_ordered()) {
    sums_in_order_.add({slot(unit), sum, is_first}, path, data, *combiner);
  } else if (is_first) {
    copy(data, sum);
  } else {
    arithmetic::Batch(*combiner).combine(sum, data.data(), data.size());
  }
  return true;
}

void UnitSlots::complete(Unit unit) {
  const std::size_t at = slot(unit);
  assert(contributions_[at].unit == unit);
  std::swap(sums_[at], done_[at]);
  results_[at] = contributions_[at].shape;
}

void UnitSlots::store(Unit unit, const UnitShape& shape, std::span<const std::uint8_t> data) {
  assert(data.size() == shape.bytes && shape.bytes <= group_.unit);
  results_[slot(unit)] = shape;
  copy(data, done_[slot(unit)]);
}

void UnitSlots::on_path_removed(PathNo gone, PathNo last) {
  for (Contribution& one : contributions_) {
    if (one.first == gone) one.first = kNoPath;
    if (one.first == last) one.first = gone;
  }
}

}  // namespace cepheus::fabric
