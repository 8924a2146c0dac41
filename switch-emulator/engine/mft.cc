#include "switch-emulator/engine/mft.h"

#include <cassert>

#include "switch-emulator/engine/check.h"

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
  path_index[port.value()] = number;
  Path path;
  path.port = port;
  path.is_host = is_host;
  path.ack = start - 1;
  paths.push_back(path);
  if (slowest == kNoPath || before(path.ack, min())) slowest = number;
  return number;
}

void Group::remove_path(PathNo path) {
  assert(path < paths.size() && path != leader);
  const auto last = static_cast<PathNo>(paths.size() - 1);
  const auto renumber = [&](PathNo& number) {
    if (number == path) {
      number = kNoPath;
    } else if (number == last) {
      number = path;
    }
  };
  renumber(source);
  renumber(previous);
  renumber(leader);
  renumber(gate.path);
  renumber(gate.answered);
  paths[path] = paths[last];
  path_index[paths[path].port.value()] = path;
  paths.pop_back();
  find_slowest();
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
  if (said && !after(*said, agg)) said.reset();
}

void Group::check_consistent(std::size_t max_held) const {
  must(paths.size() <= kMaxPaths, "more paths than the path index can name");
  for (PathNo i = 0; i < paths.size(); ++i) {
    must(find(paths[i].port) == i, "the path index names another path");
    must(paths[i].turns <= Psn::kMask, "turns beyond 24 bits");
    if (i == source) continue;
    must(!after(paths[i].ack, sent), "a path acknowledged more than was sent");
    must(slowest != kNoPath && !before(paths[i].ack, min()), "a path is behind the slowest");
  }
  must(source == kNoPath || source < paths.size(), "the source is no path");
  must(slowest == kNoPath || (slowest < paths.size() && slowest != source),
       "the slowest path is none, or the source");
  must(!after(agg, sent), "the source was told more than it sent");
  must(gate.frames.size() <= max_held, "the gate holds too many frames");
  must(gate.frames.empty() || gate.path < paths.size(), "held frames are of no path");
}

}  // namespace cepheus::fabric
