#include "fabric-sim/checked/omitted_parts.h"

#include <algorithm>
#include <limits>

#include "fabric-sim/core/trunk_distances.h"

namespace cepheus::sim {
namespace {

constexpr std::size_t kGone = std::numeric_limits<std::size_t>::max();

// The new number of each part, or kGone, by its old number.
template <typename IsLeftOut>
std::vector<std::size_t> renumbered(std::size_t count, IsLeftOut&& is_left_out) {
  std::vector<std::size_t> numbers(count, kGone);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_left_out(i)) numbers[i] = next++;
  }
  return numbers;
}

template <typename T>
void keep(std::vector<T>& all, const std::vector<std::size_t>& numbers) {
  std::size_t i = 0;
  std::erase_if(all, [&](const T&) { return numbers[i++] == kGone; });
}

class Cutter {
 public:
  Cutter(const ScenarioPlan& plan, const OmittedParts& omitted) : plan_(plan), out_(omitted) {}

  ScenarioPlan cut() {
    leave_out_faults();
    leave_out_of_fabric();
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) leave_out_of_group(g);
    std::erase_if(plan_.groups, [](const GroupPlan& g) { return g.messages.empty(); });
    return std::move(plan_);
  }

 private:
  bool lacks(PartKind kind, std::size_t number = 0, std::size_t group = 0) const {
    return out_.contains({kind, number, group});
  }
  void leave_out_faults() {
    if (lacks(PartKind::kLoss)) plan_.faults.loss = 0;
    if (lacks(PartKind::kDuplicate)) plan_.faults.duplicate = 0;
    if (lacks(PartKind::kReorder)) plan_.faults.reorder = 0;
    if (lacks(PartKind::kCorrupt)) plan_.faults.corrupt = 0;
    std::size_t number = 0;
    std::erase_if(plan_.incidents,
                  [&](const IncidentPlan&) { return lacks(PartKind::kIncident, number++); });
    if (lacks(PartKind::kCut)) plan_.cut = {};
  }
  void leave_out_of_fabric();
  void leave_out_of_group(std::size_t g);

  ScenarioPlan plan_;
  const OmittedParts& out_;
  std::vector<std::size_t> hosts_;  // new numbers of the hosts
};

void Cutter::leave_out_of_fabric() {
  net::Topology& t = plan_.topology;
  const auto switches =
      renumbered(t.switches.size(), [&](std::size_t i) { return lacks(PartKind::kSwitch, i); });
  hosts_ = renumbered(t.hosts.size(), [&](std::size_t i) {
    return lacks(PartKind::kHost, i) || switches[t.hosts[i].switch_index] == kGone;
  });
  const auto trunks = renumbered(t.trunks.size(), [&](std::size_t i) {
    return lacks(PartKind::kTrunk, i) || switches[t.trunks[i].a] == kGone ||
           switches[t.trunks[i].b] == kGone;
  });
  keep(t.switches, switches);
  keep(t.hosts, hosts_);
  keep(plan_.nics, hosts_);
  keep(t.trunks, trunks);
  for (net::HostSpec& host : t.hosts) host.switch_index = switches[host.switch_index];
  for (net::TrunkSpec& trunk : t.trunks) {
    trunk.a = switches[trunk.a];
    trunk.b = switches[trunk.b];
  }

  for (std::size_t& trunk : plan_.cut.trunks) trunk = trunks[trunk];
  std::erase(plan_.cut.trunks, kGone);
  std::erase_if(plan_.incidents, [&](IncidentPlan& incident) {
    const bool restarts = incident.kind == IncidentKind::kSwitchRestart;
    const std::size_t struck = restarts ? switches[incident.at_switch] : hosts_[incident.host];
    (restarts ? incident.at_switch : incident.host) = struck;
    return struck == kGone;
  });
}

// A part that is left out has no messages.
void Cutter::leave_out_of_group(std::size_t g) {
  GroupPlan& group = plan_.groups[g];
  const auto members = renumbered(
      group.members.size(), [&](std::size_t i) { return hosts_[group.members[i].host] == kGone; });
  std::size_t number = 0;
  std::erase_if(group.messages, [&](MessagePlan& message) {
    const bool is_out = lacks(PartKind::kMessage, number++, g);
    message.source = members[message.source];
    if (lacks(PartKind::kPackets)) {
      message.bytes = std::min(message.bytes, plan_.transport.path_mtu);
    }
    return is_out || message.source == kGone;
  });
  keep(group.members, members);
  for (MemberPlan& member : group.members) member.host = hosts_[member.host];
  group.leader = members[group.leader] == kGone ? 0 : members[group.leader];
  if (lacks(PartKind::kGroup, g) || group.members.size() < 2) group.messages.clear();
}

// Switches route over shortest paths only: one must stay whole between any two hosts.
bool has_ways(const ScenarioPlan& plan) {
  const net::Topology& t = plan.topology;
  std::set<std::size_t> with_hosts;
  for (const net::HostSpec& host : t.hosts) with_hosts.insert(host.switch_index);
  for (const std::size_t from : with_hosts) {
    const auto whole = trunk_distances(t, from);
    const auto after_cut = trunk_distances(t, from, plan.cut.trunks);
    for (const std::size_t to : with_hosts) {
      if (whole[to] == kNoPath || after_cut[to] != whole[to]) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Part> parts_of(const ScenarioPlan& plan) {
  std::vector<Part> parts;
  const auto add = [&](PartKind kind, std::size_t count, std::size_t group = 0) {
    for (std::size_t i = 0; i < count; ++i) parts.push_back({kind, i, group});
  };
  add(PartKind::kIncident, plan.incidents.size());
  add(PartKind::kCut, !plan.cut.trunks.empty());
  add(PartKind::kGroup, plan.groups.size());
  add(PartKind::kSwitch, plan.topology.switches.size());
  add(PartKind::kHost, plan.topology.hosts.size());
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    add(PartKind::kMessage, plan.groups[g].messages.size(), g);
  }
  add(PartKind::kTrunk, plan.topology.trunks.size());
  add(PartKind::kDuplicate, plan.faults.duplicate > 0);
  add(PartKind::kReorder, plan.faults.reorder > 0);
  add(PartKind::kCorrupt, plan.faults.corrupt > 0);
  add(PartKind::kLoss, plan.faults.loss > 0);
  add(PartKind::kPackets, 1);
  return parts;
}

OmittedParts essential(const ScenarioPlan& plan, const OmittedParts& omitted) {
  const auto lacks = [&](PartKind kind, std::size_t number) {
    return omitted.contains({kind, number});
  };
  const auto has_lost = [&](std::size_t host) {
    return lacks(PartKind::kHost, host) ||
           lacks(PartKind::kSwitch, plan.topology.hosts[host].switch_index);
  };
  const auto is_implied = [&](const Part& part) {
    if (part.kind == PartKind::kHost) {
      return lacks(PartKind::kSwitch, plan.topology.hosts[part.number].switch_index);
    }
    if (part.kind == PartKind::kTrunk) {
      const net::TrunkSpec& trunk = plan.topology.trunks[part.number];
      return lacks(PartKind::kSwitch, trunk.a) || lacks(PartKind::kSwitch, trunk.b);
    }
    if (part.kind != PartKind::kGroup && part.kind != PartKind::kMessage) return false;
    const std::size_t g = part.kind == PartKind::kGroup ? part.number : part.group;
    const GroupPlan& group = plan.groups[g];
    const auto left = std::ranges::count_if(
        group.members, [&](const MemberPlan& member) { return !has_lost(member.host); });
    if (left < 2 || part.kind == PartKind::kGroup) return left < 2;
    return lacks(PartKind::kGroup, g) ||
           has_lost(group.members[group.messages[part.number].source].host);
  };
  OmittedParts few;
  for (const Part& part : omitted) {
    if (!is_implied(part)) few.insert(part);
  }
  return few;
}

wire::Result<ScenarioPlan> without(const ScenarioPlan& plan, const OmittedParts& omitted) {
  if (omitted.empty()) return plan;
  const std::vector<Part> parts = parts_of(plan);
  const OmittedParts known(parts.begin(), parts.end());
  for (const Part& part : omitted) {
    if (!known.contains(part)) return wire::invalid("the seed's plan has no " + to_text({part}));
  }
  ScenarioPlan smaller = Cutter(plan, omitted).cut();
  if (smaller.groups.empty()) return wire::invalid("no group of two members and a message is left");
  if (!has_ways(smaller)) return wire::invalid("hosts are left without a way between them");
  if (const auto wired = smaller.topology.plan(); !wired) return wire::invalid(wired.error().text);
  return smaller;
}

}  // namespace cepheus::sim
