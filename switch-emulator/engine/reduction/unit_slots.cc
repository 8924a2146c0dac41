#include "switch-emulator/engine/reduction/unit_slots.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "arithmetic/combine.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

// Whole words, so that two slots share none.
constexpr std::size_t stride(std::uint16_t unit) { return (unit + std::size_t{7}) / 8 * 8; }

// GCC 12 makes a loop over bytes of std::ranges::copy.
void copy(std::span<const std::uint8_t> data, std::uint8_t* to) {
  if (!data.empty()) std::memcpy(to, data.data(), data.size());
}

}  // namespace

std::size_t UnitSlots::bytes_for(const wire::MrpReduction& group) {
  const std::size_t slot = sizeof(Contribution) + sizeof(UnitShape) + 2 * sizeof(std::uint8_t*);
  return group.window * (2 * stride(group.unit) + slot);
}

UnitSlots::UnitSlots(const wire::MrpReduction& group)
    : group_(group),
      memory_(new std::uint8_t[2 * group.window * stride(group.unit)]),
      sums_(group.window),
      done_(group.window),
      contributions_(group.window),
      results_(group.window) {
  assert(group.is_valid());
  for (std::size_t i = 0; i < group.window; ++i) {
    sums_[i] = memory_.get() + 2 * i * stride(group.unit);
    done_[i] = sums_[i] + stride(group.unit);
  }
}

bool UnitSlots::add(Unit unit, PathNo path, const UnitShape& shape,
                    std::span<const std::uint8_t> data, wire::Instant now) {
  assert(data.size() == shape.bytes && shape.bytes <= group_.unit);
  Contribution& one = contributions_[slot(unit)];
  std::uint8_t* const sum = sums_[slot(unit)];
  if (one.unit != unit) {
    one = {unit, now, 0, path, shape};
    copy(data, sum);
  } else if (one.shape != shape) {
    return false;
  } else if (!data.empty()) {
    const auto imm = wire::ReductionImm::from_what(shape.what);
    const auto combiner = arithmetic::Combiner::find(imm.operation, imm.type);
    assert(combiner);
    arithmetic::Batch(*combiner).combine(sum, data.data(), data.size());
  }
  ++one.paths;
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
