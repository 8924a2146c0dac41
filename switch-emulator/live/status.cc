#include "switch-emulator/live/status.h"

#include <algorithm>
#include <set>

namespace cepheus::live {
namespace {

const SwitchStatus* switch_called(const FabricStatus& status, const std::string& name) {
  for (const SwitchStatus& one : status.switches) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const fabric::GroupView* view_of(const SwitchStatus& one, wire::McstId id) {
  for (const fabric::GroupView& group : one.groups) {
    if (group.id == id) return &group;
  }
  return nullptr;
}

bool source_is_here(const fabric::GroupView& group) {
  return std::any_of(group.paths.begin(), group.paths.end(),
                     [](const fabric::PathView& path) { return path.is_source && path.is_host; });
}

// The names of those at and behind `at` whose lag is the largest there, into `late`; false if all
// have acknowledged.
bool collect(const FabricStatus& status, const SwitchStatus& at, wire::McstId id,
             std::set<std::string>& visited, WaitedFor& late) {
  const fabric::GroupView* group = view_of(at, id);
  if (group == nullptr || !visited.insert(at.name).second) return false;
  std::uint32_t most = 0;
  for (const fabric::PathView& path : group->paths) {
    if (!path.is_source) most = std::max(most, path.lag);
  }
  if (most == 0) return false;
  late.packets = std::max(late.packets, most);
  for (const fabric::PathView& path : group->paths) {
    if (path.is_source || path.lag != most) continue;
    const SwitchStatus* behind =
        path.is_host ? nullptr : switch_called(status, neighbour_name(path.name));
    if (behind == nullptr || !collect(status, *behind, id, visited, late)) {
      late.names.push_back(path.name);
    }
  }
  return true;
}

}  // namespace

std::string neighbour_name(const std::string& port_name) {
  return port_name.substr(0, port_name.find('#'));
}

const SwitchStatus* tree_root(const FabricStatus& status, wire::McstId id) {
  const SwitchStatus* any = nullptr;
  for (const SwitchStatus& one : status.switches) {
    const fabric::GroupView* group = view_of(one, id);
    if (group == nullptr) continue;
    if (source_is_here(*group)) return &one;
    if (any == nullptr) any = &one;
  }
  return any;
}

wire::Ipv4 next_source(const FabricStatus& status, wire::McstId id) {
  for (const SwitchStatus& one : status.switches) {
    const fabric::GroupView* group = view_of(one, id);
    if (group != nullptr && !group->next_source.is_unset()) return group->next_source;
  }
  return {};
}

WaitedFor waited_for(const FabricStatus& status, wire::McstId id) {
  WaitedFor late;
  std::set<std::string> visited;
  if (const SwitchStatus* root = tree_root(status, id)) collect(status, *root, id, visited, late);
  return late;
}

}  // namespace cepheus::live
