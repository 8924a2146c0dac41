// HPL's two broadcasts as Gleam simulates them: panel broadcast (PB) along rows, row swap (RS)
// along columns of nodes, with multicast, or with HPL's increasing ring in slices and long (spread
// and roll).
#pragma once

#include <vector>

#include "fabric-sim/experiments/schedule.h"
#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

struct HplTimes {
  wire::Duration panel{}, swap{};
};

// Members of each group, as indices of the testbed's hosts.
using HostGroups = std::vector<std::vector<std::size_t>>;

// Node (i, j) of n times n is host i n + j of the testbed.
struct Grid {
  HostGroups rows, columns;
};
Grid grid_of(std::size_t n);

// All rows at once, then all columns at once; `bytes` in each group. In a column every member
// multicasts its share in its turn. The testbed must run nothing else, before or afterwards. Groups
// are numbered from `first_group`, because switches that choose a port by hash use a group's
// number.
HplTimes time_of_gleam(Testbed& testbed, const HostGroups& rows, const HostGroups& columns,
                       std::uint64_t bytes, std::uint32_t first_group = 1);
// The row swap if one member of each column has all of its data: the first multicasts `bytes` at
// once.
// As above, on a testbed of its own.
wire::Duration time_of_swap_from_one(Testbed& testbed, const HostGroups& columns,
                                     std::uint64_t bytes);
// Unicasts: `panel` along each row, and HPL's long in each column. Ring and long is HPL's own way.
HplTimes time_of_unicasts(Testbed& testbed, const HostGroups& rows, const HostGroups& columns,
                          const Schedule& panel);
HplTimes time_of_ring_and_long(Testbed& testbed, const HostGroups& rows, const HostGroups& columns,
                               std::uint64_t bytes);

}  // namespace cepheus::sim
