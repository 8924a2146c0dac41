// Groups and connections are all set up first, outside the measured time. The panel's broadcasts
// start together, and the swap's start after all panels are done. A time ends with the last
// receiver, not with the source's completion. Source: Gleam's simulation of HPL, fig. 14.
#include "fabric-sim/experiments/gleam_hpl.h"

#include <algorithm>
#include <memory>

#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"

namespace cepheus::sim {
namespace {

using Groups = std::vector<std::unique_ptr<MulticastGroup>>;
using Runs = std::vector<std::unique_ptr<UnicastRun>>;

Groups set_up(Testbed& testbed, const HostGroups& hosts, std::uint32_t first_id) {
  Groups groups;
  for (const auto& members : hosts) {
    const wire::McstId id(first_id + static_cast<std::uint32_t>(groups.size()));
    groups.push_back(std::make_unique<MulticastGroup>(testbed, members, id));
  }
  return groups;
}

// Until the last of them has received.
template <typename Ones>
wire::Duration finish(Testbed& testbed, const Ones& ones, Instant begin) {
  testbed.run_until(
      [&] { return std::ranges::all_of(ones, [](const auto& one) { return one->is_done(); }); });
  Instant end = begin;
  for (const auto& one : ones) end = std::max(end, one->received_at());
  return end - begin;
}

// All groups at once, each from its first member.
wire::Duration send_all(Testbed& testbed, const Groups& groups, std::uint64_t bytes) {
  const Instant begin = testbed.simulator().now();
  for (const auto& group : groups) group->send(0, static_cast<std::uint32_t>(bytes));
  return finish(testbed, groups, begin);
}

wire::Duration run_all(Testbed& testbed, Runs& runs) {
  const Instant begin = testbed.simulator().now();
  for (const auto& run : runs) run->start();
  return finish(testbed, runs, begin);
}

}  // namespace

Grid grid_of(std::size_t n) {
  Grid grid{HostGroups(n), HostGroups(n)};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      grid.rows[i].push_back(i * n + j);
      grid.columns[j].push_back(i * n + j);
    }
  }
  return grid;
}

HplTimes time_of_gleam(Testbed& testbed, const HostGroups& rows, const HostGroups& columns,
                       std::uint64_t bytes, std::uint32_t first_group) {
  const std::uint32_t first = wire::kDefaultMcstPool.base.value() + first_group;
  const Groups row_groups = set_up(testbed, rows, first);
  const Groups column_groups =
      set_up(testbed, columns, first + static_cast<std::uint32_t>(rows.size()));
  HplTimes times;
  times.panel = send_all(testbed, row_groups, bytes);
  const Instant begin = testbed.simulator().now();
  for (const auto& group : column_groups) {
    group->take_turns(static_cast<std::uint32_t>(bytes / group->size()));
  }
  times.swap = finish(testbed, column_groups, begin);
  return times;
}

wire::Duration time_of_swap_from_one(Testbed& testbed, const HostGroups& columns,
                                     std::uint64_t bytes) {
  const Groups groups = set_up(testbed, columns, wire::kDefaultMcstPool.base.value() + 1);
  return send_all(testbed, groups, bytes);
}

HplTimes time_of_unicasts(Testbed& testbed, const HostGroups& rows, const HostGroups& columns,
                          const Schedule& panel) {
  Runs panels, longs;
  for (const auto& ranks : rows) {
    panels.push_back(std::make_unique<UnicastRun>(testbed, panel, ranks));
  }
  for (const auto& ranks : columns) {
    longs.push_back(
        std::make_unique<UnicastRun>(testbed, spread_and_roll(ranks.size(), panel.bytes()), ranks));
  }
  HplTimes times;
  times.panel = run_all(testbed, panels);
  times.swap = run_all(testbed, longs);
  return times;
}

HplTimes time_of_ring_and_long(Testbed& testbed, const HostGroups& rows, const HostGroups& columns,
                               std::uint64_t bytes) {
  const std::size_t ranks = rows.front().size();
  return time_of_unicasts(testbed, rows, columns, chain(ranks, bytes, ranks));
}

}  // namespace cepheus::sim
