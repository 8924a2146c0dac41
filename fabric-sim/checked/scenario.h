// One run of a seed: a network, its groups, a phase of faults, a phase without, and the end. The
// network's invariants are checked throughout. Derived classes make the groups and their operations.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric-sim/checked/incidents.h"
#include "fabric-sim/checked/network_checks.h"
#include "fabric-sim/checked/outcome.h"
#include "fabric-sim/checked/trunk_cut.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"
#include "fabric-sim/core/recorder.h"

namespace cepheus::sim {

// A group, as the run sees it.
class ScenarioGroup : public Victim {
 public:
  // The leader registers the group, unless its host is dead.
  virtual void lead() = 0;
  // The leader ends the group, if it can.
  virtual void unregister() = 0;
  // The leader has ended the group, or can't any more.
  virtual bool is_gone() const = 0;
  // All members destroy their queue pairs.
  virtual void close() = 0;
  virtual void check_path_mtus(const ScenarioPlan& scenario, Findings& findings) const = 0;
};

// The members of a group and its ledger.
template <typename Ledger, typename Member>
struct GroupOf : ScenarioGroup {
  template <typename... Arguments>
  explicit GroupOf(Arguments&&... arguments) : ledger(std::forward<Arguments>(arguments)...) {}

  void add_members(Simulator& simulator, Network& network, const ScenarioPlan& scenario) {
    Random random(scenario.seed + plan().id.value());
    for (std::size_t i = 0; i < plan().members.size(); ++i) {
      Host& host = network.host(plan().members[i].host);
      members.push_back(
          std::make_unique<Member>(simulator, host, ledger, i, scenario.transport, random.next()));
      names.push_back(members.back()->member());
    }
  }
  Member& leader() const { return *members[plan().leader]; }

  bool leader_is_active() const override { return leader().is_active(); }
  void on_disaster() override { ledger.on_disaster(); }
  void lead() override { leader().lead(names); }
  void unregister() override { leader().unregister(); }
  bool is_gone() const override { return leader().is_gone(); }
  void close() override {
    for (const auto& member : members) member->close();
  }
  void check_path_mtus(const ScenarioPlan& scenario, Findings& findings) const override {
    auto least = least_mtu(scenario, plan());
    for (const auto& member : members) {
      if (!member->takes_part()) continue;
      check_path_mtu(least, member->member().host, member->path_mtu(), findings);
    }
  }

  Ledger ledger;
  std::vector<std::unique_ptr<Member>> members;
  std::vector<wire::MrpMember> names;
};

class Scenario : private Actor {
 public:
  virtual ~Scenario() = default;
  Outcome run();

  Network& network() { return network_; }
  const Network& network() const { return network_; }
  Findings& findings() { return findings_; }

 protected:
  // Between two checks for the end.
  static constexpr Duration kStep = std::chrono::microseconds(500);

  // `trace` gets the run as text and `recording` a timeline, if not null.
  Scenario(const ScenarioPlan& plan, std::ostream* trace, std::ostream* recording);

  const ScenarioPlan& plan() const { return plan_; }
  Simulator& simulator() { return simulator_; }
  // The derived class owns the group.
  void add(ScenarioGroup& group);
  // The group that was added last is led when the plan says.
  void lead_later();

  // False if the run is over: a finding, or the event budget is used up.
  bool run_until(Instant end);
  // Runs until all_done(), not before `earliest`. False: it was not by `end`.
  bool run_until_done(Instant earliest, Instant end);
  // When the last group is led.
  Instant last_start() const;
  // Of the cables' faults and of stalls.
  Instant end_of_faults() const;

 private:
  enum What : std::uint64_t { kFaultsBegin, kFaultsEnd, kGroupBegins };  // ... + its number

  // All operations and all faults end, or there is a finding.
  virtual void run_operations() = 0;
  virtual bool all_done() const = 0;
  // Called after each step of run_until_done().
  virtual void on_step() = 0;
  // Further checks after the end, if there is no finding yet.
  virtual void check_end() {}
  // Adds numbers that only the groups know.
  virtual void add_to(Outcome&) const {}

  void on_event(Instant now, std::uint64_t what) override;
  bool faults_are_over() const;
  bool something_is_left() const;
  void dissolve();
  void await_empty_cables();

  const ScenarioPlan plan_;
  Simulator simulator_;
  Findings findings_;
  IsolationWatch isolation_;
  Network network_;
  std::optional<Recorder> recorder_;
  std::vector<ScenarioGroup*> groups_;
  Incidents incidents_;
  TrunkCut cut_;
};

}  // namespace cepheus::sim
