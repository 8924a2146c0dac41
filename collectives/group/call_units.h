// A call of a team's reductions, as the units in which the members agree on it: a gather is one unit, and
// a reduction of values has one unit for each packet of the group. Pure.
//
// `most`: bytes of the group's longest gather. One that is longer takes part by one unit without bytes, so
// that all members count alike, and then goes another way. So do values that the group reduces in other
// pairs than the user wants. `packet`: bytes of a packet, whole values of every type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "arithmetic/combine.h"
#include "collectives/group/reduction_group.h"

namespace cepheus::coll {

struct CallUnits {
  std::size_t total = 0;  // bytes of the result, the same on all members
  Block block{};          // a gather's, of this member
  // Of a reduction of values: whole ones. The result may lie in the place of the values, or apart.
  const std::byte* values = nullptr;
  std::byte* result = nullptr;
  std::optional<arithmetic::Combiner> combiner{};
  bool has_pairs = true;  // the group has the pairs that the user wants

  // Else it is a gather, or takes part as one.
  bool is_of_values() const { return combiner && has_pairs; }
  bool fits(std::size_t most) const { return has_pairs && (combiner || total <= most); }
  std::size_t count(std::size_t packet) const { return count_of(total, packet); }
  // ... of a part of this many bytes. A gather has one.
  std::size_t count_of(std::size_t bytes, std::size_t packet) const {
    return is_of_values() ? (bytes + packet - 1) / packet : 1;
  }
  // Bytes of the first `count` units of a reduction of values.
  std::size_t bytes(std::size_t count, std::size_t packet) const {
    return std::min(count * packet, total);
  }
};

}  // namespace cepheus::coll
