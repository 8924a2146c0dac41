#include "switch-emulator/engine/mft.h"

#include <cassert>

#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/numbering.h"

namespace cepheus::fabric {

Group::Group(McstId mcst_id, std::uint16_t registration_epoch, const Strategies& how)
    : strategies(how),
      id(mcst_id),
      epoch(registration_epoch),
      start(wire::group_start_psn(mcst_id, registration_epoch)),
      turn(start),
      cnps(make_cnp_policy(how.cnps, how.cnp_window)) {}

PathNo Group::add_path(PortId port, bool is_host) {
  assert(find(port) == kNoPath && paths.size() < kMaxPaths);
  const auto number = static_cast<PathNo>(paths.size());
  if (path_index.size() <= port.value()) path_index.resize(port.value() + std::size_t{1}, 0);
  path_index[port.value()] = number;
  Path path;
  path.port = port;
  path.is_host = is_host;
  paths.push_back(path);
  evidence.emplace_back();
  turn.on_path_added(paths);
  cnps->on_path_added();
  return number;
}

void Group::remove_path(PathNo path) {
  assert(path < paths.size() && path != leader);
  const auto last = static_cast<PathNo>(paths.size() - 1);
  if (leader == last) leader = path;
  if (regions) regions->remove(paths[path].port);
  paths[path] = paths[last];
  path_index[paths[path].port.value()] = path;
  paths.pop_back();
  evidence[path] = evidence[last];
  evidence.pop_back();
  turn.on_path_removed(paths, path, last);
  cnps->on_path_removed(path, last);
}

Regions& Group::own_regions() {
  if (!regions) regions = std::make_unique<Regions>();
  return *regions;
}

void Group::begin_turn(PathNo newcomer, Ipv4 source_ip, Psn first, Psn port_first) {
  turn.begin(paths, newcomer, source_ip, first, port_first, strategies.numbering->counts_turns());
  if (regions) regions->on_turn();
  cnps->on_turn(paths.size());
}

void Group::check_consistent(std::size_t max_held) const {
  must(evidence.size() == paths.size(), "evidence of other paths than there are");
  must(paths.size() <= kMaxPaths, "more paths than the path index can name");
  for (PathNo i = 0; i < paths.size(); ++i) {
    must(find(paths[i].port) == i, "the path index names another path");
  }
  const auto is_member = [&](PortId port) {
    return find(port) != kNoPath && paths[find(port)].is_host;
  };
  must(!regions || regions->is_consistent(is_member), "regions of nobody, or out of order");
  turn.check_consistent(paths, max_held);
}

}  // namespace cepheus::fabric
