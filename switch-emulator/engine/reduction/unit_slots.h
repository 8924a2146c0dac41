// Memory of a reduction group's units, reserved when the group is registered: two pools of W slots of
// U bytes. Slot k mod W has unit k.
//
//   contributions   filled by the children; free once the unit's result is there
//   results         computed here (the root), or from the parent; kept until unit k + W has its own
//
// So a contribution never waits for another member's acknowledgement of a result. A group of ordered
// sums has partial sums beside each contribution (ordered_sums.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "switch-emulator/engine/group/path.h"
#include "switch-emulator/engine/reduction/ordered_sums.h"
#include "switch-emulator/engine/reduction/unit.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

// Operation and type as in the immediate (wire::ReductionImm::what), and the payload's bytes.
struct UnitShape {
  std::uint8_t what = 0;
  std::uint16_t bytes = 0;
  friend bool operator==(const UnitShape&, const UnitShape&) = default;
};

class UnitSlots {
 public:
  struct Contribution {
    Unit unit = kNoUnit;
    wire::Instant since{};  // the first contribution
    std::uint16_t paths = 0;
    PathNo first = kNoPath;  // the first contribution's path
    UnitShape shape;
  };

  // Precondition: `group.is_valid()`.
  explicit UnitSlots(const wire::MrpReduction& group);
  static std::size_t bytes_for(const wire::MrpReduction& group, std::size_t paths);
  std::size_t bytes(std::size_t paths) const { return bytes_for(group_, paths); }
  std::uint16_t window() const { return group_.window; }
  std::uint16_t unit_bytes() const { return group_.unit; }

  bool has_order() const { return group_.kind == wire::MrpReduction::kOrdered; }
  // Whether the operation and type are served, with this number of bytes.
  bool serves(const UnitShape& shape) const;
  // From now on, sums and products of floating-point numbers are in pairs by these places.
  // Preconditions: has_order(); nothing has been added.
  void set_order(SumOrder order) { sums_in_order_.set_order(std::move(order)); }

  const Contribution& contribution(Unit unit) const { return contributions_[slot(unit)]; }
  // Adds a contribution: the first of a unit is copied, others are combined with it. False, and
  // nothing is added, if its shape is not that of the first one. Precondition: the shape's operation
  // and type are served, and the path has not contributed to it.
  bool add(Unit unit, PathNo path, const UnitShape& shape, std::span<const std::uint8_t> data,
           wire::Instant now);
  // All have contributed: the sum is the result.
  void complete(Unit unit);
  // The parent has sent the result.
  void store(Unit unit, const UnitShape& shape, std::span<const std::uint8_t> data);
  // A path has left; `last` has its number.
  void on_path_removed(PathNo gone, PathNo last);

  struct Content {
    UnitShape shape;
    std::span<const std::uint8_t> data;
  };
  Content partial(Unit unit) const {
    const Contribution& one = contributions_[slot(unit)];
    return {one.shape, {sums_[slot(unit)], one.shape.bytes}};
  }
  Content result(Unit unit) const {
    const UnitShape& shape = results_[slot(unit)];
    return {shape, {done_[slot(unit)], shape.bytes}};
  }

 private:
  std::size_t slot(Unit unit) const { return unit & (group_.window - 1u); }

  const wire::MrpReduction group_;
  const std::unique_ptr<std::uint8_t[]> memory_;
  // By slot: its memory in either pool. The root exchanges both, and so copies nothing.
  std::vector<std::uint8_t*> sums_, done_;
  std::vector<Contribution> contributions_;
  std::vector<UnitShape> results_;
  OrderedSums sums_in_order_;
};

}  // namespace cepheus::fabric
