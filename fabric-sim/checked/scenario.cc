#include "fabric-sim/checked/scenario.h"

#include <algorithm>

#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

Scenario::Scenario(const ScenarioPlan& plan, std::ostream* trace, std::ostream* recording)
    : plan_(plan),
      simulator_(plan.event_budget, plan.events_per_millisecond()),
      findings_(simulator_),
      isolation_(plan_, findings_),
      network_(simulator_, plan_.topology, plan_.nics),
      incidents_(simulator_, network_, plan_),
      cut_(simulator_, network_, plan_) {
  if (plan_.box.is_box()) network_.run_on_boxes(plan_.box, plan_.seed);
  simulator_.trace().print_to(trace);
  if (recording != nullptr) {
    recorder_.emplace(*recording, plan_.topology);
    simulator_.trace().record_to(&*recorder_);
  }
  for (std::size_t i = 0; i < network_.host_count(); ++i) network_.host(i).set_watch(&isolation_);
  simulator_.schedule(Instant{plan_.faults.begin}, *this, kFaultsBegin);
  simulator_.schedule(Instant{plan_.faults.end}, *this, kFaultsEnd);
}

void Scenario::add(ScenarioGroup& group) {
  groups_.push_back(&group);
  incidents_.add(group);
  cut_.add(group);
}

void Scenario::lead_later() {
  simulator_.schedule(Instant{groups_.back()->plan().starts}, *this,
                      kGroupBegins + groups_.size() - 1);
}

void Scenario::on_event(Instant now, std::uint64_t what) {
  const Faults& f = plan_.faults;
  if (what == kFaultsBegin && f.end > f.begin) {
    simulator_.trace().note(now, "fabric", "begins to fail");
    network_.set_faults(f.loss, f.duplicate, f.reorder, f.corrupt);
  } else if (what == kFaultsEnd) {
    simulator_.trace().note(now, "fabric", "ends its faults");
    network_.set_faults(0, 0, 0, 0);
  } else if (what >= kGroupBegins) {
    groups_[what - kGroupBegins]->lead();
  }
}

bool Scenario::run_until(Instant end) {
  if (simulator_.run(end) == Simulator::End::kBudget) {
    findings_.report(Invariant::kProgress,
                     std::to_string(simulator_.events()) + " events and no end");
  }
  return !findings_.first();
}

bool Scenario::run_until_done(Instant earliest, Instant end) {
  while (simulator_.now() < end) {
    if (simulator_.now() >= earliest && all_done()) return true;
    if (!run_until(std::min(simulator_.now() + kStep, end))) return false;
    on_step();
  }
  return false;
}

Instant Scenario::last_start() const {
  Instant last{};
  for (const GroupPlan& group : plan_.groups) last = std::max(last, Instant{group.starts});
  return last;
}

Instant Scenario::end_of_faults() const {
  return Instant{std::max(plan_.faults.end, end_of_stalls(plan_))};
}

// From now on every UNREGISTER arrives at the switches that hold the group, and each group has a
// leader. A restarted switch may not know behind which ports others are. Sender groups have no
// tombstones: a late copy of an INSTALL leaves a record until it ages.
bool Scenario::faults_are_over() const {
  const bool is_whole = plan_.cut.trunks.empty() && last_restart(plan_).count() == 0;
  const bool may_be_late = plan_.late_packets_meet_tombstone && plan_.has_sender_groups();
  return is_whole && !may_be_late && simulator_.now() >= end_of_faults() &&
         std::ranges::all_of(groups_, [](const ScenarioGroup* group) {
           return group->leader_is_active() && !group->is_gone();
         });
}

void Scenario::dissolve() {
  const Duration late = plan_.has_sender_groups() ? 10ms + 4 * plan_.faults.reorder_by : 3ms;
  if (!plan_.late_packets_meet_tombstone && !run_until(simulator_.now() + late)) return;
  const bool ends_without_faults = faults_are_over();
  for (ScenarioGroup* const group : groups_) group->unregister();
  const Instant end = std::max(simulator_.now(), end_of_faults()) + plan_.recovery;
  const auto is_gone = [](const ScenarioGroup* group) { return group->is_gone(); };
  while (!std::ranges::all_of(groups_, is_gone) && simulator_.now() < end) {
    if (!run_until(simulator_.now() + kStep)) return;
  }
  for (ScenarioGroup* const group : groups_) group->close();
  Duration rest{0}, age{0};
  for (const net::SwitchSpec& s : plan_.topology.switches) {
    rest = std::max(rest, s.config.rest);
    age = std::max({age, s.config.age, s.config.pending_age});
  }
  if (!run_until(std::max(simulator_.now(), end_of_faults()) + rest + 10ms)) return;
  if (ends_without_faults) check_tables_are_empty(network_, findings_);
  // Every UNREGISTER may have been lost, or no leader was left to send it. Then tables age, and
  // leave tombstones that age as well. When a trunk comes back, switches report sender groups that
  // they still hold, and these reports restart the ages.
  for (int i = 0; i < 2 && !findings_.first() && something_is_left(); ++i) {
    run_until(simulator_.now() + age + rest + 10ms);
  }
  if (!findings_.first()) await_empty_cables();
}

bool Scenario::something_is_left() const {
  return std::ranges::any_of(network_.switches(), [](const auto& node) {
    const fabric::Switch& engine = node->engine();
    return engine.group_count() + engine.tombstone_count() + engine.sender_groups().size() > 0;
  });
}

// Runs on until no frame is in flight. Switches may exchange HELLOs for ever, all at the same
// moments: until a moment between two of them.
void Scenario::await_empty_cables() {
  const bool sends_hellos = plan_.topology.hello.count() > 0;
  if (!sends_hellos && network_.frames_in_flight() == 0) return;
  const Duration hello = sends_hellos ? plan_.topology.hello : 1ms;
  const auto since = simulator_.now().time_since_epoch();
  Instant between(since - since % hello + hello * 3 / 2);
  bool goes_on = run_until(between);
  for (int i = 0; i < 3 && goes_on && network_.frames_in_flight() > 0; ++i) {
    goes_on = run_until(between += hello);
  }
}

Outcome Scenario::run() {
  incidents_.start();
  cut_.start();
  try {
    run_operations();
    for (const ScenarioGroup* const group : groups_) group->check_path_mtus(plan_, findings_);
    if (!findings_.first()) dissolve();
  } catch (const fabric::Inconsistent& error) {
    findings_.report(Invariant::kConsistency, error.what());
  }
  if (!findings_.first()) check_end();
  if (!findings_.first()) {
    check_balance(network_, findings_);
    check_lengths(network_, findings_);
    check_lossless(network_, plan_, findings_);
    check_requests(network_, findings_);
    check_nothing_is_left(network_, findings_);
  }
  if (recorder_) recorder_->finish(simulator_.now());
  Outcome outcome;
  outcome.failure = findings_.first();
  outcome.trace_hash = simulator_.trace().hash();
  outcome.events = simulator_.events();
  outcome.virtual_time = simulator_.now().time_since_epoch();
  outcome.add(network_);
  add_to(outcome);
  return outcome;
}

}  // namespace cepheus::sim
