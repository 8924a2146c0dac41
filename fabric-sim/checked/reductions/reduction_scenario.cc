#include "fabric-sim/checked/reductions/reduction_scenario.h"

#include <algorithm>

#include "switch-emulator/engine/check.h"

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
  Instant faults_end{std::max({plan_.faults.end, plan_.lasts, end_of_stalls(plan_)})};
  for (const GroupPlan& group : plan_.groups) {
    faults_end = std::max(faults_end, Instant{group.starts});
  }
  const Instant end = faults_end + (is_whole() ? 1 : 3) * plan_.recovery;
  const auto is_done = [](const auto& group) { return group->ledger.is_done(); };
  while (simulator_.now() < end) {
    if (simulator_.now() >= faults_end && std::ranges::all_of(groups_, is_done)) return;
    if (!run_until(std::min(simulator_.now() + kCheckEvery, end))) return;
  }
  for (const auto& group : groups_) group->ledger.check_done();
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
  if (!run_until(simulator_.now() + 3ms)) return;  // acknowledgements of the last results
  for (const auto& group : groups_) {
    if (!group->leader().is_gone()) group->leader().unregister();
  }
  const Instant end = simulator_.now() + plan_.recovery;
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
  if (!run_until(simulator_.now() + rest + 10ms)) return;
  // Without a leader, or without all switches, tables age.
  for (int i = 0; i < 2 && !is_whole() && something_is_left(); ++i) {
    if (!run_until(simulator_.now() + age + rest + 10ms)) return;
  }
  check_tables_are_empty(network_, findings_);
}

Outcome ReductionScenario::run() {
  try {
    run_operations();
    if (!findings_.first()) dissolve();
  } catch (const fabric::Inconsistent& error) {
    findings_.report(Invariant::kConsistency, error.what());
  }
  if (!findings_.first()) {
    check_balance(network_, findings_);
    check_lengths(network_, findings_);
    check_lossless(network_, plan_, findings_);
    if (plan_.topology.hello.count() == 0) check_nothing_is_left(network_, findings_);
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
    o.pauses += node->pause_totals().pauses_sent;
  }
  for (const auto& cable : network_.cables()) o.marked += cable->queue_counters().marked;
  return o;
}

Outcome run_reduction_seed(std::uint64_t seed, const PlanOptions& options, std::ostream* trace) {
  return ReductionScenario(make_plan(seed, options), trace).run();
}

}  // namespace cepheus::sim
