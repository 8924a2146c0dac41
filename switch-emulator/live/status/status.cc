// waited_for() follows the largest lag from the switch where the data enters, down the trunks, to
// the hosts. Each switch is visited once, so a loop in the status ends. Members of reductions are
// compared over all switches (late.h).
//
// subtract() pairs switches and ports by position, groups by identifier and epoch. An object
// without a counterpart keeps its counters, and so does a counter that has become smaller: the
// fabric restarted.
#include "switch-emulator/live/status/status.h"

#include <algorithm>
#include <set>

#include "switch-emulator/live/status/late.h"
#include "switch-emulator/live/status/readings.h"

namespace cepheus::live {
namespace {

const SwitchStatus* switch_called(const FabricStatus& status, const std::string& name) {
  const auto at = std::ranges::find(status.switches, name, &SwitchStatus::name);
  return at == status.switches.end() ? nullptr : &*at;
}

const fabric::GroupView* view_of(const SwitchStatus& one, wire::McstId id) {
  const auto at = std::ranges::find(one.groups, id, &fabric::GroupView::id);
  return at == one.groups.end() ? nullptr : &*at;
}

bool source_is_here(const fabric::GroupView& group) {
  return std::any_of(group.paths.begin(), group.paths.end(),
                     [](const fabric::PathView& path) { return path.is_source && path.is_host; });
}

// Adds to `late` the names of the hosts at and behind `at` with the largest lag there; false if all
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

HostNames::HostNames(const FabricStatus& status) {
  for (const SwitchStatus& one : status.switches) {
    for (const PortStatus& port : one.ports) {
      if (port.kind == net::PortKind::kHost) names_.emplace(port.address, port.name);
    }
  }
}

std::string HostNames::of(wire::Ipv4 address) const {
  if (address.is_unset()) return "";
  const auto at = names_.find(address);
  return at == names_.end() ? address.to_string() : at->second;
}

std::string neighbour_name(const std::string& port_name) {
  return port_name.substr(0, port_name.find('#'));
}

const SwitchStatus* tree_root(const FabricStatus& status, wire::McstId id) {
  const SwitchStatus* any = nullptr;
  for (const SwitchStatus& one : status.switches) {
    const fabric::GroupView* group = view_of(one, id);
    if (group == nullptr) continue;
    if (source_is_here(*group) || (group->reduction && group->reduction->is_root)) return &one;
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
  const SwitchStatus* root = tree_root(status, id);
  if (root == nullptr) return late;
  const fabric::GroupView& group = *view_of(*root, id);
  if (group.reduction) {
    if (const auto failed = failure_of(status, id, group.epoch)) late.failure = failed->why;
    for (const LateMember& each : missing_members(status, id, group.epoch)) {
      if (each.late < kLeastLate) continue;
      late.names.push_back(each.name);
      late.packets = std::max(late.packets, static_cast<std::uint32_t>(each.units));
      late.late = std::max(late.late, each.late);
    }
    return late;
  }
  std::set<std::string> visited;
  collect(status, *root, id, visited, late);
  return late;
}

namespace {

template <typename Object>
void subtract_counters(Object& now, const Object& before) {
  for (const Reading<Object>& reading : readings<Object>()) {
    if (reading.kind != Kind::kCounter) continue;
    const std::uint64_t value = reading.of(now), then = reading.of(before);
    reading.set(now, value < then ? value : value - then);  // less: the fabric restarted meanwhile
  }
}

// Of objects that existed before.
template <typename Group, typename IsSame>
void subtract_groups(std::vector<Group>& groups, const std::vector<Group>& baseline,
                     IsSame is_same) {
  for (Group& group : groups) {
    const auto before = std::find_if(baseline.begin(), baseline.end(),
                                     [&](const Group& each) { return is_same(each, group); });
    if (before != baseline.end()) subtract_counters(group, *before);
  }
}

void subtract(PortStatus& port, const PortStatus& baseline) {
  subtract_counters(port, baseline);
  subtract_counters(port.in, baseline.in);
  subtract_counters(port.out, baseline.out);
}

void subtract(SwitchStatus& one, const SwitchStatus& baseline) {
  subtract_counters(one, baseline);
  for (std::size_t p = 0; p < std::min(one.ports.size(), baseline.ports.size()); ++p) {
    subtract(one.ports[p], baseline.ports[p]);
  }
  subtract_groups(one.groups, baseline.groups,
                  [](const auto& a, const auto& b) { return a.id == b.id && a.epoch == b.epoch; });
  subtract_groups(one.sender_groups, baseline.sender_groups, [](const auto& a, const auto& b) {
    return a.sender == b.sender && a.virtual_qpn == b.virtual_qpn && a.addressed == b.addressed &&
           a.epoch == b.epoch;
  });
}

}  // namespace

void subtract(FabricStatus& status, const FabricStatus& baseline) {
  subtract_counters(status, baseline);
  for (std::size_t s = 0; s < std::min(status.switches.size(), baseline.switches.size()); ++s) {
    subtract(status.switches[s], baseline.switches[s]);
  }
}

}  // namespace cepheus::live
