// Incidents of a run, besides its cables' faults: one to five a seed, which may overlap, from a
// member's death to forged packets.
//
//   kDeath         a host falls silent for ever; its switch notices the port, or not
//   kHostRestart   the same, and the host comes back without its queue pairs
//   kPause         a host and its NIC stop for a while, as a paused virtual machine does
//   kProgramStall  its programs stop, its NIC goes on acknowledging
//   kNicStall      its NIC stops, its programs go on
//   kSwitchRestart a switch loses all its tables
//   kForgery       a host that is no member forges: spoofed addresses, registration in the leader's
//                  name, feedback, data, noise
//   kHostileMember a member of a reduction group breaks its rules (reductions/hostile_member.h)
//
// Stalls and forgery must change nothing. A death may lose messages that the dead member had begun,
// and ends the group if the member led it. A switch's restart may end every operation of the groups
// that it holds. Where switches find new paths, groups of the same members must come up again. No
// operation may ever falsely complete.
#pragma once

#include "fabric-sim/checked/forgery.h"
#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

// A group, as incidents and cuts see it.
class Victim {
 public:
  virtual ~Victim() = default;
  virtual const GroupPlan& plan() const = 0;
  virtual bool leader_is_active() const = 0;
  // From now on its operations may fail.
  virtual void on_disaster() = 0;
  // The member's host is gone, with all its state.
  virtual void kill(std::size_t member) = 0;
};

class Incidents final : public Actor {
 public:
  Incidents(Simulator& simulator, Network& network, const ScenarioPlan& plan);
  void add(Victim& victim) { groups_.push_back(&victim); }
  void start();

  void on_event(Instant now, std::uint64_t what) override;

 private:
  enum What : std::uint64_t { kStrike, kNotice, kReturn, kForge, kWhats };  // ... + kWhats * number

  void schedule(Instant at, What what, std::size_t number) {
    simulator_.schedule(at, *this, what + kWhats * number);
  }
  void strike(Instant now, std::size_t number);
  void kill_host(std::size_t host);
  void restart_switch(SwitchNode& node);
  void forge(Instant now, std::size_t number);
  wire::Frame forged_datagram(const Host& forger, const GroupPlan& target);
  wire::Frame forged_roce(const Host& forger, const GroupPlan& target);

  Simulator& simulator_;
  Network& network_;
  const ScenarioPlan& plan_;
  Random random_;
  Forgery forgery_;
  std::vector<Victim*> groups_;
  std::uint32_t forged_ = 0;
};

// Draws the seed's incidents; changes the plan where they require it.
void add_incidents(ScenarioPlan& plan);
// In three of ten seeds of reductions one member is hostile. Often its host and others also have an
// honest group.
void add_hostile_member(ScenarioPlan& plan);
// When a switch restarts for the last time; 0: never.
wire::Duration last_restart(const ScenarioPlan& plan);
// When the last stall ends.
wire::Duration end_of_stalls(const ScenarioPlan& plan);

}  // namespace cepheus::sim
