// What befalls a run beside its cables' faults: one incident a seed, from a member's death to
// forged packets.
//
//   kDeath         a host falls silent for ever; its switch notices the port, or nobody does
//   kHostRestart   the same, and the host comes back without its queue pairs
//   kStall         a host does nothing for a while, then goes on where it was
//   kSwitchRestart a switch loses all its tables
//   kForgery       a host that is no member forges: spoofed addresses, registration in the leader's
//                  name, feedback, data, noise
//
// Stalls and forgery must change nothing. A death may cost what the dead member had begun to send,
// and everything if it led; a switch's restart may end every operation of the groups that it holds,
// and where switches find new ways, groups of the same members must come up again. Nothing may ever
// falsely complete.
#pragma once

#include "fabric-sim/checked/victim.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

class Incidents final : public Actor {
 public:
  Incidents(Simulator& simulator, Network& network, const ScenarioPlan& plan);
  void add(const Victim& victim) { groups_.push_back(victim); }
  void start();

  void on_event(Instant now, std::uint64_t what) override;

 private:
  enum What : std::uint64_t { kStrike, kNotice, kReturn, kForge };

  void strike(Instant now);
  void kill_host();
  void restart_switch();
  void forge(Instant now);
  wire::Frame forged_datagram(const GroupPlan& target);
  wire::Frame forged_roce(const GroupPlan& target);

  Simulator& simulator_;
  Network& network_;
  const ScenarioPlan& plan_;
  const IncidentPlan& incident_;
  Random random_;
  std::vector<Victim> groups_;
  std::uint32_t forged_ = 0;
};

// Draws the seed's incident; changes the plan where the incident needs it.
void add_incident(ScenarioPlan& plan);

}  // namespace cepheus::sim
