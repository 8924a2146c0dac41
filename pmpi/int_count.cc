#include "pmpi/int_count.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "pmpi/calls.h"

namespace cepheus::pmpi {

IntCount::IntCount(Count count, Datatype type) : type_(type) {
  constexpr Count kBlock = Count{1} << 30;
  if (count <= std::numeric_limits<int>::max()) {
    count_ = static_cast<int>(std::max<Count>(count, -1));
    return;
  }
  const Calls& mpi = calls();
  Count lower_bound = 0, extent = 0;
  if (mpi.Type_get_extent_x == nullptr ||
      mpi.Type_get_extent_x(type, &lower_bound, &extent) != kSuccess)
    return;
  std::vector<int> lengths;
  std::vector<std::intptr_t> distances;
  for (Count at = 0; at < count; at += kBlock) {
    lengths.push_back(static_cast<int>(std::min(kBlock, count - at)));
    distances.push_back(static_cast<std::intptr_t>(at * extent));
  }
  if (mpi.Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), distances.data(),
                               type, &type_) != kSuccess)
    return;
  is_own_ = true;
  if (mpi.Type_commit(&type_) == kSuccess) count_ = 1;
}

IntCount::~IntCount() {
  if (is_own_) (void)calls().Type_free(&type_);
}

}  // namespace cepheus::pmpi
