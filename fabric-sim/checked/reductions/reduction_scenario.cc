#include "fabric-sim/checked/reductions/reduction_scenario.h"

#include <algorithm>

#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCheckEvery = 500us;

}  // namespace

ReductionScenario::ReductionScenario(const ScenarioPlan& plan, std::ostream* trace)
    : plan_(plan),
      simulator_(plan.event_budget),
      findings_(simulator_),
      isolation_(plan_, findings_),
      network_(simulator_, plan_.topology, plan_.nics),
      incidents_(simulator_, network_, plan_),
      cut_(simulator_, network_, plan_) {
  if (plan_.box.is_box()) network_.run_on_boxes(plan_.box, plan_.seed);
  simulator_.trace().print_to(trace);
  for (std::size_t i = 0; i < network_.host_count(); ++i) network_.host(i).set_watch(&isolation_);
  simulator_.schedule(Instant{plan_.faults.begin}, *this, kFaultsBegin);
  simulator_.schedule(Instant{plan_.faults.end}, *this, kFaultsEnd);
  for (const GroupPlan& group : plan_.groups) add_group(group);
  incidents_.start();
  cut_.start();
}

void ReductionScenario::add_group(const GroupPlan& plan) {
  const ReductionPlan reductions = make_reduction_plan(plan, plan_);
  groups_.push_back(std::make_unique<Group>(reductions, findings_));
  Group& group = *groups_.back();
  Random random(plan_.seed + plan.id.value());
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    group.members.push_back(
        std::make_unique<ReductionProgram>(simulator_, network_.host(plan.members[i].host),
                                           group.ledger, i, plan_.transport, random.next()));
    group.names.push_back(group.members.back()->name());
  }
  incidents_.add(group);
  cut_.add(group);
  simulator_.schedule(Instant{plan.starts}, *this, kGroupBegins + groups_.size() - 1);
}

void ReductionScenario::on_event(Instant now, std::uint64_t what) {
  const Faults& f = plan_.faults;
  if (what == kFaultsBegin && f.end > f.begin) {
    simulator_.trace().note(now, "fabric", "begins to fail");
    network_.set_faults(f.loss, f.duplicate, f.reorder, f.corrupt);
  } else if (what == kFaultsEnd) {
    simulator_.trace().note(now, "fabric", "ends its faults");
    network_.set_faults(0, 0, 0, 0);
  } else if (what >= kGroupBegins) {
    Group& group = *groups_[what - kGroupBegins];
    if (!group.ledger.is_dead(group.plan().leader)) group.leader().lead(group.names);
  }
}

// False if the run is over: a finding, or the event budget is used up.
bool ReductionScenario::run_until(Instant end) {
  if (simulator_.run(end) == Simulator::End::kBudget) {
    findings_.report(Invariant::kProgress,
                     std::to_string(simulator_.events()) + " events and no end");
  }
  return !findings_.first();
}

// Until all operations and all faults have ended. After a disaster this takes longer: its members
// learn it one after the other.
void ReductionScenario::run_operations() {
  Instant last_begins{};
  for (const GroupPlan& group : plan_.groups) {
    last_begins = std::max(last_begins, Instant{group.starts});
  }
  const Instant faults_end = std::max({last_begins, Instant{plan_.faults.end}, Instant{plan_.lasts},
                                       Instant{end_of_stalls(plan_)}});
  const Instant end = faults_end + (is_whole() ? 1 : 3) * plan_.recovery;
  const Instant earliest = plan_.late_packets_meet_tombstone ? last_begins : faults_end;
  const auto is_done = [](const auto& group) { return group->ledger.is_done(); };
  while (simulator_.now() < end) {
    begin_operations();
    if (simulator_.now() >= earliest && std::ranges::all_of(groups_, is_done)) return;
    if (!run_until(std::min(simulator_.now() + kCheckEvery, end))) return;
  }
  for (const auto& group : groups_) group->ledger.check_done();
}

// A group leaves units out before its first, when all are active and nothing is under way. If a
// disaster comes first, it leaves none out.
void ReductionScenario::begin_operations() {
  for (const auto& group : groups_) {
    if (group->has_begun) continue;
    std::uint64_t units = group->ledger.may_fail() ? 0 : group->ledger.plan().left_out;
    const auto is_active = [](const auto& member) { return member->is_active(); };
    const auto may_jump = [&](std::uint64_t by) {
      const wire::McstId id = group->plan().id;
      return std::ranges::all_of(network_.switches(), [&](const auto& node) {
        return !node->engine().group(id) || node->jump(id, by);
      });
    };
    if (units > 0) {
      if (!std::ranges::all_of(group->members, is_active) || network_.carries_roce()) continue;
      if (!may_jump(0)) continue;
      static_cast<void>(may_jump(units));
      simulator_.trace().note(simulator_.now(), "fabric", "leaves out units", units);
    }
    for (const auto& member : group->members) {
      if (!member->begin(units)) {
        findings_.report(Invariant::kProgress, "an idle member can't leave out units");
      }
    }
    group->has_begun = true;
  }
}

// No member dies, no switch restarts, and no trunk is cut.
bool ReductionScenario::is_whole() const {
  const auto is_loss = [](const IncidentPlan& incident) {
    return incident.kind == IncidentKind::kDeath || incident.kind == IncidentKind::kHostRestart ||
           incident.kind == IncidentKind::kSwitchRestart;
  };
  return plan_.cut.trunks.empty() && std::ranges::none_of(plan_.incidents, is_loss);
}

bool ReductionScenario::something_is_left() const {
  return std::ranges::any_of(network_.switches(), [](const auto& node) {
    return node->engine().group_count() + node->engine().tombstone_count() > 0;
  });
}

void ReductionScenario::dissolve() {
  if (!plan_.late_packets_meet_tombstone) {
    if (!run_until(simulator_.now() + 3ms)) return;  // acknowledgements of the last results
  }
  for (const auto& group : groups_) {
    if (!group->leader().is_gone()) group->leader().unregister();
  }
  const Duration faults_end = std::max(plan_.faults.end, end_of_stalls(plan_));
  const Instant end = std::max(simulator_.now(), Instant{faults_end}) + plan_.recovery;
  const auto is_gone = [](const auto& group) { return group->leader().is_gone(); };
  while (!std::ranges::all_of(groups_, is_gone) && simulator_.now() < end) {
    if (!run_until(simulator_.now() + kCheckEvery)) return;
  }
  for (const auto& group : groups_) {
    for (const auto& member : group->members) member->close();
  }
  Duration rest{0}, age{0};
  for (const net::SwitchSpec& s : plan_.topology.switches) {
    rest = std::max(rest, s.config.rest);
    age = std::max({age, s.config.age, s.config.pending_age});
  }
  if (!run_until(std::max(simulator_.now(), Instant{faults_end}) + rest + 10ms)) return;
  // Without a leader, or without all switches, or if each UNREGISTER was lost, tables age.
  const bool may_age = !is_whole() || plan_.late_packets_meet_tombstone;
  for (int i = 0; i < 2 && may_age && something_is_left(); ++i) {
    if (!run_until(simulator_.now() + age + rest + 10ms)) return;
  }
  await_empty_cables(network_, plan_, simulator_.now(),
                     [this](Instant until) { return run_until(until); });
}

void ReductionScenario::check_path_mtus() {
  for (const auto& group : groups_) {
    auto least = least_mtu(plan_, group->plan());
    for (const auto& member : group->members) {
      if (!member->is_active()) continue;
      check_path_mtu(least, member->name().host, member->path_mtu(), findings_);
    }
  }
}

Outcome ReductionScenario::run() {
  try {
    run_operations();
    if (!findings_.first()) check_path_mtus();
    if (!findings_.first()) dissolve();
  } catch (const fabric::Inconsistent& error) {
    findings_.report(Invariant::kConsistency, error.what());
  }
  if (!findings_.first()) {
    check_balance(network_, findings_);
    check_lengths(network_, findings_);
    check_lossless(network_, plan_, findings_);
    check_nothing_is_left(network_, findings_);
  }
  return summary();
}

Outcome ReductionScenario::summary() {
  Outcome o;
  o.failure = findings_.first();
  o.trace_hash = simulator_.trace().hash();
  o.events = simulator_.events();
  o.virtual_time = simulator_.now().time_since_epoch();
  for (std::size_t i = 0; i < network_.host_count(); ++i) {
    const rnic::Counters& c = network_.host(i).nic().counters();
    o.time_outs += c[rnic::Counter::kAckTimeouts];
    o.naks += c[rnic::Counter::kRxNakSequence];
    o.rnr_naks += c[rnic::Counter::kRxRnrNak];
  }
  for (const auto& node : network_.switches()) {
    o.reduced += node->engine().counters()[fabric::Counter::kReductionUnits];
    o.spoofed += node->engine().counters()[fabric::Counter::kDropSpoofedSource];
    o.pauses += node->pause_totals().pauses_sent;
  }
  for (const auto& cable : network_.cables()) o.marked += cable->queue_counters().marked;
  return o;
}

}  // namespace cepheus::sim
