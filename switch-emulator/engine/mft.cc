#include "switch-emulator/engine/mft.h"

#include <cassert>

namespace cepheus::fabric {

Group::Group(McstId mcst_id, std::uint16_t registration_epoch, std::size_t ports)
    : id(mcst_id),
      epoch(registration_epoch),
      start(wire::group_start_psn(mcst_id, registration_epoch)),
      path_index(ports, 0),
      base(start),
      source_first(start),
      sent(start - 1),
      agg(start - 1) {}

PathNo Group::add_path(PortId port, bool is_host) {
  assert(find(port) == kNoPath && paths.size() < kMaxPaths);
  const auto number = static_cast<PathNo>(paths.size());
  path_index[port.value()] = static_cast<std::uint8_t>(number);
  Path path;
  path.port = port;
  path.is_host = is_host;
  path.ack = start - 1;
  paths.push_back(path);
  find_slowest();
  return number;
}

void Group::find_slowest() {
  slowest = kNoPath;
  for (PathNo i = 0; i < paths.size(); ++i) {
    if (i == source) continue;
    if (slowest == kNoPath || before(paths[i].ack, paths[slowest].ack)) slowest = i;
  }
}

void Group::set_ack(PathNo path, Psn ack) {
  if (paths[path].ack == ack) return;
  paths[path].ack = ack;
  if (path == slowest) find_slowest();
}

void Group::advance_aggregate(Psn to) {
  if (!after(to, agg)) return;
  turn_messages += ends.take(agg, to);
  agg = to;
}

void Group::check_consistent(std::size_t max_held) const {
  assert(paths.size() <= kMaxPaths);
  for (PathNo i = 0; i < paths.size(); ++i) {
    assert(find(paths[i].port) == i);
    assert(paths[i].turns <= Psn::kMask);
    if (i != source) assert(!after(paths[i].ack, sent));
    if (i != source) assert(slowest != kNoPath && !before(paths[i].ack, min()));
  }
  assert(source == kNoPath || source < paths.size());
  assert(slowest == kNoPath || (slowest < paths.size() && slowest != source));
  assert(!after(agg, sent));
  assert(gate.frames.size() <= max_held);
  assert(gate.frames.empty() || gate.path < paths.size());
  static_cast<void>(max_held);
}

}  // namespace cepheus::fabric
