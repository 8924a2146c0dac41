#include "fabric-sim/checked/reductions/reduction_scenario.h"

#include <algorithm>

#include "switch-emulator/engine/views.h"

namespace cepheus::sim {

ReductionScenario::ReductionScenario(const ScenarioPlan& scenario, std::ostream* trace,
                                     std::ostream* recording)
    : Scenario(scenario, trace, recording) {
  for (const GroupPlan& group : plan().groups) {
    groups_.push_back(std::make_unique<Group>(make_reduction_plan(group, plan()), findings()));
    groups_.back()->add_members(simulator(), network(), plan());
    find_pairs_later(*groups_.back());
    add_hostile_members(*groups_.back());
    add(*groups_.back());
    lead_later();
  }
}

// After a disaster this takes longer: members learn of it one after the other.
void ReductionScenario::run_operations() {
  const Instant faults_end = std::max({last_start(), Instant{plan().lasts}, end_of_faults()});
  const Instant end = faults_end + (may_lose_members() ? 3 : 1) * plan().recovery;
  begin_operations();
  if (run_until_done(plan().late_packets_meet_tombstone ? last_start() : faults_end, end)) return;
  for (const auto& group : groups_) {
    if (!waits_for_hostile(*group)) group->ledger.check_done();
  }
}

void ReductionScenario::find_pairs_later(Group& group) {
  std::vector<wire::Ipv4> addresses;
  for (const wire::MrpMember& name : group.names) addresses.push_back(name.host);
  group.ledger.find_pairs_by(addresses,
                             [this, addresses, id = group.plan().id, epoch = group.plan().epoch] {
                               return MemberPairs::over_tree(network(), id, epoch, addresses);
                             });
}

void ReductionScenario::on_step() {
  for (const auto& group : groups_) group->ledger.look_for_pairs();
  begin_operations();
}

void ReductionScenario::add_hostile_members(Group& group) {
  for (const IncidentPlan& incident : plan().incidents) {
    if (incident.kind != IncidentKind::kHostileMember || incident.group != group.plan().id)
      continue;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      if (group.plan().members[i].host != incident.host) continue;
      hostile_.push_back(std::make_unique<HostileMember>(simulator(), network(), plan(), incident,
                                                         group.ledger, i));
    }
  }
}

// A hostile member that answers, and does not contribute, is late for ever. Switches name no other
// host. If it is alone at its switch, its neighbours name their trunks to it.
bool ReductionScenario::waits_for_hostile(const Group& group) const {
  if (!group.ledger.hostile()) return false;
  const std::size_t member = group.ledger.hostile()->member;
  const auto host_of = [&](const auto& one) -> const net::HostSpec& {
    return plan().topology.hosts[one.host];
  };
  const auto& all = group.plan().members;
  const wire::Ipv4 hostile = host_of(all[member]).address;
  const bool is_alone =
      std::ranges::count(all, host_of(all[member]).switch_index,
                         [&](const auto& one) { return host_of(one).switch_index; }) == 1;
  bool waits = false;
  for (const auto& node : network().switches()) {
    const auto view = node->engine().group(group.plan().id);
    for (const fabric::PathView& path : view ? view->paths : std::vector<fabric::PathView>()) {
      if (!path.late) continue;
      if (path.is_host && path.host != hostile) return false;
      waits = waits || path.is_host || is_alone;
    }
  }
  return waits;
}

bool ReductionScenario::all_done() const {
  return std::ranges::all_of(groups_, [](const auto& group) { return group->ledger.is_done(); });
}

// A group skips units before its first operation. If a disaster comes first, it skips none.
void ReductionScenario::begin_operations() {
  for (const auto& group : groups_) {
    if (group->has_begun) continue;
    const std::uint64_t units = group->ledger.may_fail() ? 0 : group->ledger.plan().skipped;
    if (units > 0 && !skip(*group, units)) continue;
    for (const auto& member : group->members) {
      if (!member->begin(units)) {
        findings().report(Invariant::kProgress, "an idle member can't skip units");
      }
    }
    group->has_begun = true;
  }
}

// Moves the group's switches on by these units. False, with no change: a member is not active yet,
// or a packet is in flight.
bool ReductionScenario::skip(const Group& group, std::uint64_t units) {
  const auto is_active = [](const auto& member) { return member->is_active(); };
  if (!std::ranges::all_of(group.members, is_active) || network().carries_roce()) return false;
  const wire::McstId id = group.plan().id;
  const auto jump = [&](std::uint64_t by) {
    return std::ranges::all_of(network().switches(), [&](const auto& node) {
      return !node->engine().group(id) || node->jump(id, by);
    });
  };
  if (!jump(0) || !jump(units)) return false;  // first checks that all can
  simulator().trace().note(simulator().now(), "fabric", "skips units", units);
  return true;
}

// A member dies or is hostile, a switch restarts, or a trunk is cut.
bool ReductionScenario::may_lose_members() const {
  const auto is_loss = [](const IncidentPlan& incident) {
    return incident.kind == IncidentKind::kDeath || incident.kind == IncidentKind::kHostRestart ||
           incident.kind == IncidentKind::kSwitchRestart ||
           incident.kind == IncidentKind::kHostileMember;
  };
  return !plan().cut.trunks.empty() || std::ranges::any_of(plan().incidents, is_loss);
}

}  // namespace cepheus::sim
