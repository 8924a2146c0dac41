// Forged frames about sender groups, published regions and reductions, in the names of members or
// of the forger. They have their own stream of random numbers, so that seeds without such groups
// stay the same.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/host.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

class Forgery {
 public:
  explicit Forgery(const ScenarioPlan& plan);

  // Nothing if the group neither reduces nor is a sender group, and no member publishes regions.
  std::optional<wire::Frame> next(const Host& forger, const GroupPlan& target);

 private:
  wire::Frame sender_message(const Host& forger, const GroupPlan& target);
  wire::Frame to_virtual_queue_pair(const Host& forger, const GroupPlan& target);
  wire::Frame publication(const Host& forger, const GroupPlan& target);
  wire::Frame part_of_reduction(const Host& forger, const GroupPlan& target);

  wire::Ipv4 address_of(const MemberPlan& member) const {
    return plan_.topology.hosts[member.host].address;
  }
  const MemberPlan& one_of(const GroupPlan& group) {
    return group.members[random_.below(group.members.size())];
  }
  // `payload` lives as long as this object: a host may send it much later.
  wire::Frame datagram(const Host& forger, wire::Ipv4 from, wire::Ipv4 to, std::uint16_t port,
                       std::vector<std::uint8_t> payload);

  const ScenarioPlan& plan_;
  Random random_;
  std::deque<std::vector<std::uint8_t>> payloads_;
};

}  // namespace cepheus::sim
