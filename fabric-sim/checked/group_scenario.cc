#include "fabric-sim/checked/group_scenario.h"

#include <algorithm>

#include "fabric-sim/checked/stranded.h"
#include "fabric-sim/core/random.h"
#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

constexpr Duration kStep = 500us;  // between two checks for the end

GroupScenario::GroupScenario(const ScenarioPlan& plan, std::ostream* trace, std::ostream* recording)
    : plan_(plan),
      simulator_(plan.event_budget),
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
  for (const GroupPlan& group : plan_.groups) add_group(group);
  incidents_.start();
  cut_.start();
}

bool GroupScenario::may_give_up(const GroupPlan& plan) const {
  return std::ranges::any_of(plan.members, [this](const MemberPlan& member) {
    return plan_.nics[member.host].manners.limits_rnr_retries;
  });
}

void GroupScenario::add_group(const GroupPlan& plan) {
  groups_.push_back(std::make_unique<Group>(plan, plan_.seed, findings_));
  Group& group = *groups_.back();
  Random random(plan_.seed + plan.id.value());
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    Host& host = network_.host(plan.members[i].host);
    group.members.push_back(std::make_unique<GroupMember>(simulator_, host, group.ledger, i,
                                                          plan_.transport, random.next()));
    group.names.push_back(group.members.back()->member());
    group.members.back()->set_announce([&group] {
      for (const auto& member : group.members) member->on_peer_write();
    });
  }
  if (may_give_up(plan)) group.ledger.on_disaster();
  incidents_.add(group);
  cut_.add(group);
  if (plan.starts.count() == 0) return group.leader().lead(group.names);
  simulator_.schedule(Instant{plan.starts}, *this, kGroupBegins + groups_.size() - 1);
}

void GroupScenario::on_event(Instant now, std::uint64_t what) {
  const Faults& f = plan_.faults;
  if (what == kFaultsBegin && f.end > f.begin) {
    simulator_.trace().note(now, "fabric", "begins to fail");
    network_.set_faults(f.loss, f.duplicate, f.reorder, f.corrupt);
  } else if (what == kFaultsEnd) {
    simulator_.trace().note(now, "fabric", "ends its faults");
    network_.set_faults(0, 0, 0, 0);
  } else if (what >= kGroupBegins) {
    Group& group = *groups_[what - kGroupBegins];
    group.leader().lead(group.names);
  }
}

// False if the run is over: a finding, or the event budget is used up.
bool GroupScenario::run_until(Instant end) {
  const Simulator::End reason = simulator_.run(end);
  if (reason == Simulator::End::kBudget) {
    findings_.report(Invariant::kProgress,
                     std::to_string(simulator_.events()) + " events and no end");
  }
  return !findings_.first();
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
std::string GroupScenario::still_open(Group& group) const {
  if (!group.ledger.plan().in_turns) return {};
  const std::string id = group.ledger.plan().id.to_string();
  if (group.is_waiting()) return "a send to " + id + " neither completed nor failed";
  const auto stranded = stranded_member(network_, {group.ledger, group.members, group.leader()});
  if (!stranded) return {};
  return "member " + std::to_string(*stranded) + " waits for " + id + ", but finds no leader there";
}

bool GroupScenario::all_done() const {
  return std::ranges::all_of(groups_, [&](const auto& group) {
    const bool has_all = group->ledger.is_done();
    const bool may_end_early = plan_.has_successors && group->ledger.may_fail();
    return (has_all || may_end_early) && still_open(*group).empty();
  });
}

// After a disaster operations may fail, but none may stay open. This takes longer than an end
// without faults: a leader gives up one member after the other, and only then the remaining
// senders' retries begin.
void GroupScenario::end_operations() {
  const Instant end = simulator_.now() + plan_.recovery;
  for (const auto& group : groups_) {
    std::string open = still_open(*group);
    for (; !open.empty() && simulator_.now() < end; open = still_open(*group)) {
      if (!run_until(simulator_.now() + kStep)) return;
    }
    if (!open.empty()) findings_.report(Invariant::kLiveness, open);
  }
}

// Moves every member on by `packets` of the source, or none of them.
bool GroupScenario::jump(Group& group, std::size_t source, std::uint64_t packets) {
  const wire::McstId id = group.ledger.plan().id;
  for (const std::uint64_t step : {std::uint64_t{0}, packets}) {  // first checks that all can
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      if (!group.ledger.is_dead(i) && !group.members[i]->jump(source, step)) return false;
    }
    for (const auto& node : network_.switches()) {
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
        if (packets == 0 || network_.carries_roce() || !jump(*group, source, packets)) break;
        simulator_.trace().note(simulator_.now(), "fabric", "jumps over packets", packets);
        jumped_ += packets;
      }
      ledger.on_jump(packets);
      for (const auto& member : group->members) member->on_jump();
    }
  }
}

// Until all operations and all faults have ended: faults go on even if the operations end early.
void GroupScenario::run_operations() {
  Instant last_begins{};
  for (const GroupPlan& group : plan_.groups) {
    last_begins = std::max(last_begins, Instant{group.starts});
  }
  const Instant faults_end =
      std::max({Instant{plan_.faults.end}, Instant{plan_.lasts}, last_begins});
  const Instant give_up = faults_end + plan_.recovery;
  const bool must_end = std::ranges::any_of(plan_.groups, &GroupPlan::in_turns);
  const Instant end = must_end ? give_up : faults_end + 20ms;
  while (simulator_.now() < end) {
    const Instant earliest = plan_.late_packets_meet_tombstone ? last_begins : faults_end;
    if (simulator_.now() >= earliest && all_done()) return;
    if (!run_until(std::min(simulator_.now() + kStep, end))) return;
    jump();
  }
  for (const auto& group : groups_) group->ledger.check_ended();
  if (!findings_.first()) end_operations();
}

// From now on every UNREGISTER arrives at the switches that hold the group, and each group has a
// leader. A restarted switch may not know behind which ports others are. Sender groups have no
// tombstones: a late copy of an INSTALL leaves a record until it ages.
bool GroupScenario::faults_are_over() const {
  const Duration faults_end = std::max(plan_.faults.end, end_of_stalls(plan_));
  const bool is_whole = plan_.cut.trunks.empty() && last_restart(plan_).count() == 0;
  const bool may_be_late = plan_.late_packets_meet_tombstone && has_sender_groups();
  return is_whole && !may_be_late && simulator_.now() >= Instant{faults_end} &&
         std::ranges::all_of(groups_, [](const auto& group) {
           return group->leader().is_active() && !group->leader().is_gone();
         });
}

// All members use the least path MTU.
void GroupScenario::check_path_mtus() {
  for (const auto& group : groups_) {
    auto least = least_mtu(plan_, group->ledger.plan());
    for (const auto& member : group->members) {
      if (!member->takes_part()) continue;
      check_path_mtu(least, member->member().host, member->path_mtu(), findings_);
    }
  }
}

void GroupScenario::dissolve() {
  const Duration late = has_sender_groups() ? 10ms + 4 * plan_.faults.reorder_by : 3ms;
  if (!plan_.late_packets_meet_tombstone && !run_until(simulator_.now() + late)) return;
  const bool ends_without_faults = faults_are_over();
  for (const auto& group : groups_) group->leader().unregister();
  const Instant end = std::max(simulator_.now(), Instant{plan_.faults.end}) + plan_.recovery;
  const auto all_gone = [this] {
    return std::ranges::all_of(groups_,
                               [](const auto& group) { return group->leader().is_gone(); });
  };
  while (!all_gone() && simulator_.now() < end) {
    if (!run_until(simulator_.now() + kStep)) return;
  }
  for (const auto& group : groups_) {
    for (const auto& member : group->members) member->close();
  }
  Duration rest{0};
  for (const net::SwitchSpec& s : plan_.topology.switches) rest = std::max(rest, s.config.rest);
  const Duration faults_end = std::max(plan_.faults.end, end_of_stalls(plan_));
  run_until(std::max(simulator_.now(), Instant{faults_end}) + rest + 10ms);
  if (ends_without_faults && !findings_.first()) check_tables_are_empty(network_, findings_);
  // Every UNREGISTER may have been lost, or no leader was left to send it. Then tables age, and
  // leave tombstones that age as well. When a trunk comes back, switches report sender groups that
  // they still hold, and these reports restart the ages.
  Duration age{0};
  for (const net::SwitchSpec& s : plan_.topology.switches) {
    age = std::max({age, s.config.age, s.config.pending_age});
  }
  for (int i = 0; i < 2 && !findings_.first() && something_is_left(); ++i) {
    run_until(simulator_.now() + age + rest + 10ms);
  }
  if (findings_.first()) return;
  await_empty_cables(network_, plan_, simulator_.now(),
                     [this](Instant until) { return run_until(until); });
}

bool GroupScenario::something_is_left() const {
  return std::ranges::any_of(network_.switches(), [](const auto& node) {
    const fabric::Switch& engine = node->engine();
    return engine.group_count() + engine.tombstone_count() + engine.sender_groups().size() > 0;
  });
}

Outcome GroupScenario::run() {
  try {
    run_operations();
    if (!findings_.first()) check_path_mtus();
    if (!findings_.first()) dissolve();
  } catch (const fabric::Inconsistent& error) {
    findings_.report(Invariant::kConsistency, error.what());
  }
  for (const auto& group : groups_) {
    if (!findings_.first()) group->ledger.check_regions();
  }
  if (!findings_.first()) {
    check_balance(network_, findings_);
    check_lengths(network_, findings_);
    check_lossless(network_, plan_, findings_);
    check_requests(network_, findings_);
    check_nothing_is_left(network_, findings_);
  }
  if (recorder_) recorder_->finish(simulator_.now());
  return summary();
}

Outcome& Outcome::operator+=(const Outcome& other) {
  events += other.events;
  turns += other.turns;
  gated += other.gated;
  time_outs += other.time_outs;
  naks += other.naks;
  rnr_naks += other.rnr_naks;
  evicted += other.evicted;
  spoofed += other.spoofed;
  writes += other.writes;
  writes_refused += other.writes_refused;
  marked += other.marked;
  pauses += other.pauses;
  jumped += other.jumped;
  gave_up += other.gave_up;
  reduced += other.reduced;
  return *this;
}

Outcome GroupScenario::summary() {
  Outcome o;
  o.failure = findings_.first();
  o.trace_hash = simulator_.trace().hash();
  o.events = simulator_.events();
  o.virtual_time = simulator_.now().time_since_epoch();
  o.jumped = jumped_;
  for (const auto& node : network_.switches()) {
    const fabric::Counters& c = node->engine().counters();
    o.turns += c[fabric::Counter::kTurns];
    o.evicted += c[fabric::Counter::kPathsEvicted];
    o.spoofed += c[fabric::Counter::kDropSpoofedSource];
    o.writes_refused += c[fabric::Counter::kDropWriteRefused];
    o.gated += c[fabric::Counter::kGateHeld] + c[fabric::Counter::kGateRnr];
    o.pauses += node->pause_totals().pauses_sent;
  }
  for (const auto& cable : network_.cables()) o.marked += cable->queue_counters().marked;
  for (const auto& group : groups_) {
    o.writes += group->ledger.completed_writes();
    const auto gave_up = [](const auto& member) { return member->gave_up(); };
    o.gave_up += static_cast<std::uint64_t>(std::ranges::count_if(group->members, gave_up));
  }
  for (std::size_t i = 0; i < network_.host_count(); ++i) {
    const rnic::Counters& c = network_.host(i).nic().counters();
    o.time_outs += c[rnic::Counter::kAckTimeouts];
    o.naks += c[rnic::Counter::kRxNakSequence];
    o.rnr_naks += c[rnic::Counter::kRxRnrNak];
  }
  return o;
}

}  // namespace cepheus::sim
