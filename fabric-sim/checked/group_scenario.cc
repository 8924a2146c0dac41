#include "fabric-sim/checked/group_scenario.h"

#include <algorithm>

#include "fabric-sim/checked/stranded.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

GroupScenario::GroupScenario(const ScenarioPlan& scenario, std::ostream* trace,
                             std::ostream* recording)
    : Scenario(scenario, trace, recording) {
  for (const GroupPlan& group : plan().groups) add_group(group);
}

bool GroupScenario::may_give_up(const GroupPlan& group) const {
  return std::ranges::any_of(group.members, [this](const MemberPlan& member) {
    return plan().nics[member.host].manners.limits_rnr_retries;
  });
}

void GroupScenario::add_group(const GroupPlan& group_plan) {
  groups_.push_back(std::make_unique<Group>(group_plan, plan().seed, findings()));
  Group& group = *groups_.back();
  group.add_members(simulator(), network(), plan());
  for (const auto& member : group.members) {
    member->set_announce([&group] {
      for (const auto& each : group.members) each->on_peer_write();
    });
  }
  if (may_give_up(group_plan)) group.ledger.on_disaster();
  add(group);
  if (group_plan.starts.count() == 0) return group.lead();
  lead_later();
}

void GroupScenario::Group::kill(std::size_t member) {
  ledger.on_death(member);
  // A sender group ends with its last receiver.
  if (plan().has_one_sender && ledger.living_members() == 1) ledger.on_disaster();
  members[member]->die();
  for (const auto& other : members) other->on_death_of_another();
}

bool GroupScenario::Group::is_waiting() const {
  return std::ranges::any_of(members, [](const auto& member) { return member->is_waiting(); });
}

// An open operation of the group, or a wait without end; empty: there is none.
std::string GroupScenario::still_open(const Group& group) const {
  if (!group.ledger.plan().in_turns) return {};
  const std::string id = group.ledger.plan().id.to_string();
  if (group.is_waiting()) return "a send to " + id + " neither completed nor failed";
  const auto stranded = stranded_member(network(), {group.ledger, group.members, group.leader()});
  if (!stranded) return {};
  return "member " + std::to_string(*stranded) + " waits for " + id + ", but finds no leader there";
}

bool GroupScenario::all_done() const {
  return std::ranges::all_of(groups_, [&](const auto& group) {
    const bool has_all = group->ledger.is_done();
    const bool may_end_early = plan().has_successors && group->ledger.may_fail();
    return (has_all || may_end_early) && still_open(*group).empty();
  });
}

// After a disaster operations may fail, but none may stay open. This takes longer than an end
// without faults: a leader gives up one member after the other, and only then the remaining
// senders' retries begin.
void GroupScenario::end_operations() {
  const Instant end = simulator().now() + plan().recovery;
  for (const auto& group : groups_) {
    std::string open = still_open(*group);
    for (; !open.empty() && simulator().now() < end; open = still_open(*group)) {
      if (!run_until(simulator().now() + kStep)) return;
    }
    if (!open.empty()) findings().report(Invariant::kLiveness, open);
  }
}

// Moves every member on by `packets` of the source, or none of them.
bool GroupScenario::jump(Group& group, std::size_t source, std::uint64_t packets) {
  const wire::McstId id = group.ledger.plan().id;
  for (const std::uint64_t step : {std::uint64_t{0}, packets}) {  // first checks that all can
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      if (!group.ledger.is_dead(i) && !group.members[i]->jump(source, step)) return false;
    }
    for (const auto& node : network().switches()) {
      const bool is_there = node->engine().group(id).has_value();
      if (is_there && !node->jump(id, step)) return false;
    }
  }
  return true;
}

// A turn should go on for more packets than can be simulated, and none is under way.
void GroupScenario::jump() {
  for (const auto& group : groups_) {
    GroupLedger& ledger = group->ledger;
    while (const auto message = ledger.due_jump()) {
      const std::size_t source = ledger.plan().messages[*message].source;
      std::uint64_t packets = ledger.jump_left();
      // A disaster may have ended the turn that should jump.
      if (!ledger.may_fail() && !ledger.is_dead(source)) {
        packets = group->members[source]->possible_jump(packets);
        if (packets == 0 || network().carries_roce() || !jump(*group, source, packets)) break;
        simulator().trace().note(simulator().now(), "fabric", "jumps over packets", packets);
        jumped_ += packets;
      }
      ledger.on_jump(packets);
      for (const auto& member : group->members) member->on_jump();
    }
  }
}

// Faults go on even if the operations end early.
void GroupScenario::run_operations() {
  const Instant faults_end =
      std::max({Instant{plan().faults.end}, Instant{plan().lasts}, last_start()});
  const bool must_end = std::ranges::any_of(plan().groups, &GroupPlan::in_turns);
  const Instant end = faults_end + (must_end ? plan().recovery : 20ms);
  if (run_until_done(plan().late_packets_meet_tombstone ? last_start() : faults_end, end)) return;
  for (const auto& group : groups_) group->ledger.check_ended();
  if (!findings().first()) end_operations();
}

void GroupScenario::check_end() {
  for (const auto& group : groups_) group->ledger.check_regions();
}

void GroupScenario::add_to(Outcome& outcome) const {
  outcome.jumped = jumped_;
  for (const auto& group : groups_) {
    outcome.writes += group->ledger.completed_writes();
    const auto gave_up = [](const auto& member) { return member->gave_up(); };
    outcome.gave_up += static_cast<std::uint64_t>(std::ranges::count_if(group->members, gave_up));
  }
}

}  // namespace cepheus::sim
