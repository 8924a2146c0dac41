// Invariants of the network itself: isolation of groups, balance of frames, no remains.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "fabric-sim/checked/findings.h"
#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/network.h"

namespace cepheus::sim {

// No packet of a group reaches a host outside it. No packet with the group's own address reaches a
// member, and none with a virtual QPN reaches any host.
class IsolationWatch final : public FrameWatch {
 public:
  IsolationWatch(const ScenarioPlan& plan, Findings& findings);
  void on_arrival(Instant now, wire::Ipv4 host, const wire::Frame& frame) override;

 private:
  const wire::Ipv4Prefix pool_;
  std::map<wire::McstId, std::set<wire::Ipv4>> members_;
  wire::Ipv4 forger_;
  // Of sender groups: allowed pairs of source and destination.
  std::set<std::pair<wire::Ipv4, wire::Ipv4>> pairs_;
  Findings& findings_;
};

// Frames out of every node = delivered + dropped by a named reason + in flight.
void check_balance(const Network& network, Findings& findings);
// After a cut frames may be dropped that it leaves without a pause; else lossless is lossless.
void check_lossless(const Network& network, const ScenarioPlan& plan, Findings& findings);
// The least path MTU of the group's members and of all ports between them; none if there are several
// ways.
std::optional<std::uint32_t> least_mtu(const ScenarioPlan& plan, const GroupPlan& group);
// Reports a member whose path MTU is not the group's least one. If `least` is unset, this member
// sets it for the next ones.
void check_path_mtu(std::optional<std::uint32_t>& least, wire::Ipv4 member, std::uint32_t path_mtu,
                    Findings& findings);
// No copy was too long for its port.
void check_lengths(const Network& network, Findings& findings);
// Switches have repeated requests to sources for overdue feedback only.
void check_requests(const Network& network, Findings& findings);
// No group and no tombstone in any switch.
void check_tables_are_empty(const Network& network, Findings& findings);
// After the end: no group, no tombstone, no frame, no buffer.
void check_nothing_is_left(const Network& network, Findings& findings);

}  // namespace cepheus::sim
