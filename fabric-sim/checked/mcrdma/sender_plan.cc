#include "fabric-sim/checked/mcrdma/sender_plan.h"

#include "fabric-sim/core/random.h"
#include "wire/sender_group.h"

namespace cepheus::sim {
namespace {

constexpr std::uint64_t kSenderStream =
    0x5'E2DE'2000;  // so that other parts of the seed's plan stay the same

void use_one_sender(GroupPlan& group) {
  constexpr std::size_t kMost = wire::SenderGroupMessage::kMaxReceivers + 1;
  group.has_one_sender = true;
  group.in_turns = true;
  std::swap(group.members.front(), group.members[group.leader]);
  group.leader = 0;
  if (group.members.size() > kMost) group.members.resize(kMost);
  for (MessagePlan& m : group.messages) m.source = group.leader;
}

}  // namespace

wire::Qpn virtual_qpn_of(const GroupPlan& group) {
  return wire::Qpn(wire::kFirstSenderGroupQpn + (group.id.value() & 0xFFFF) * 16);
}

void use_sender_groups(ScenarioPlan& plan) {
  Random random(plan.seed ^ kSenderStream);
  const auto branching =
      random.chance(0.5) ? net::SenderGroups::kEverywhere : net::SenderGroups::kRacks;
  for (net::SwitchSpec& spec : plan.topology.switches) spec.config.sender_groups = branching;
  for (GroupPlan& group : plan.groups) use_one_sender(group);
}

}  // namespace cepheus::sim
