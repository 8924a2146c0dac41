// One run: a network, its groups, a phase of faults, a phase without, and the end. All invariants
// are checked throughout.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/checked/group_member.h"
#include "fabric-sim/checked/incidents.h"
#include "fabric-sim/checked/network_checks.h"
#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/checked/trunk_cut.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/recorder.h"

namespace cepheus::sim {

struct Outcome {
  std::optional<Finding> failure;  // none: all invariants held
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  wire::Duration virtual_time{0};
  // Numbers of events in the run, which distinguish a rich scenario from a dull one.
  std::uint64_t turns = 0;
  std::uint64_t gated = 0;  // first packets of a newcomer held or answered RNR
  std::uint64_t time_outs = 0;
  std::uint64_t naks = 0;      // sequence NAKs at senders
  std::uint64_t rnr_naks = 0;  // RNR NAKs at senders
  std::uint64_t evicted = 0;
  std::uint64_t spoofed = 0;         // packets dropped for their source address
  std::uint64_t writes = 0;          // multicast WRITEs that completed
  std::uint64_t writes_refused = 0;  // packets of WRITEs beyond a region
  std::uint64_t marked = 0;          // copies that queues marked
  std::uint64_t pauses = 0;          // sent by switches, without repeats
  std::uint64_t jumped = 0;          // packets that were skipped instead of simulated
  std::uint64_t gave_up = 0;         // members that got no answer to their questions
  std::uint64_t reduced = 0;         // units of reductions that all behind a switch contributed to

  // Adds up the numbers of several runs.
  Outcome& operator+=(const Outcome& other);
};

class GroupScenario final : private Actor {
 public:
  // `trace` gets the run as text and `recording` a timeline, if not null.
  explicit GroupScenario(const ScenarioPlan& plan, std::ostream* trace = nullptr,
                         std::ostream* recording = nullptr);
  Outcome run();

  Network& network() { return network_; }
  Findings& findings() { return findings_; }

 private:
  enum What : std::uint64_t { kFaultsBegin, kFaultsEnd, kGroupBegins };  // ... + its number
  struct Group final : Victim {
    Group(const GroupPlan& plan, std::uint64_t seed, Findings& findings)
        : ledger(plan, seed, findings) {}

    GroupLedger ledger;
    std::vector<std::unique_ptr<GroupMember>> members;
    std::vector<wire::MrpMember> names;

    const GroupPlan& plan() const override { return ledger.plan(); }
    bool leader_is_active() const override { return leader().is_active(); }
    void on_disaster() override { ledger.on_disaster(); }
    void kill(std::size_t member) override;
    GroupMember& leader() const { return *members[plan().leader]; }
    // Whether a member has an open send, neither completed nor failed.
    bool is_waiting() const;
  };

  // Whether a NIC may give up on a member that is not ready: gates and late receives may need more
  // RNR NAKs than it has retries.
  bool may_give_up(const GroupPlan& plan) const;
  void add_group(const GroupPlan& plan);
  void on_event(Instant now, std::uint64_t what) override;
  bool run_until(Instant end);
  bool all_done() const;
  std::string still_open(Group& group) const;
  void end_operations();
  bool has_sender_groups() const { return plan_.groups.front().has_one_sender; }
  bool faults_are_over() const;
  bool something_is_left() const;
  void run_operations();
  void jump();
  bool jump(Group& group, std::size_t source, std::uint64_t packets);
  void check_path_mtus();
  void dissolve();
  Outcome summary();

  const ScenarioPlan plan_;
  Simulator simulator_;
  Findings findings_;
  IsolationWatch isolation_;
  Network network_;
  std::optional<Recorder> recorder_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::uint64_t jumped_ = 0;
  Incidents incidents_;
  TrunkCut cut_;
};

}  // namespace cepheus::sim
