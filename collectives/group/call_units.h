// A call of a team's reductions, as the units in which its group serves it: a gather is one unit, a
// reduction of values is one or more. Pure.
//
// `most`: the bytes of the group's results. A call that is too long for the group takes part by one unit
// without bytes, so that all members count alike, and then goes another way. So does one that the group
// reduces in other pairs than the user wants.
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
  // Of a reduction of values: whole ones. The result may lie in the place of the values.
  const std::byte* values = nullptr;
  std::byte* result = nullptr;
  std::optional<arithmetic::Combiner> combiner{};
  bool has_pairs = true;  // the group has the pairs that the user wants

  bool fits(std::size_t most) const {
    return has_pairs && (combiner ? most >= combiner->size() : total <= most);
  }
  std::size_t count(std::size_t most) const {
    if (!combiner || !fits(most)) return 1;
    const std::size_t bytes = whole_bytes(most);
    return (total + bytes - 1) / bytes;
  }
  // Of a reduction of values: where unit `index` begins.
  std::size_t offset(std::size_t index, std::size_t most) const {
    return index * whole_bytes(most);
  }
  std::size_t bytes(std::size_t index, std::size_t most) const {
    if (!fits(most)) return 0;
    if (!combiner) return total;
    return std::min(whole_bytes(most), total - offset(index, most));
  }

 private:
  std::size_t whole_bytes(std::size_t most) const {
    return most / combiner->size() * combiner->size();
  }
};

}  // namespace cepheus::coll
