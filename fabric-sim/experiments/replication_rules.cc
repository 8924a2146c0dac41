// All patterns are enumerated: a sender and two receivers, each pair once. A pattern counts at the
// rack's switch if the data pass it and the branches there need a rule, as fabric::bifurcate()
// finds. Work grows with the cube of the hosts. A host that can't be reached throws. Source:
// MC-RDMA V-B.
#include "fabric-sim/experiments/replication_rules.h"

#include <stdexcept>

#include "net/shapes.h"

namespace cepheus::sim {
namespace {

// Hosts come first among a switch's ports.
wire::PortId port(std::size_t number) { return wire::PortId(static_cast<std::uint16_t>(number)); }

}  // namespace

Racks::Racks(std::size_t racks, std::size_t hosts_per_rack) : per_rack_(hosts_per_rack) {
  net::Topology topology = net::leaf_spine(racks, 1, hosts_per_rack);
  for (net::SwitchSpec& one : topology.switches) {
    one.config.sender_groups = net::SenderGroups::kRacks;
  }
  for (const net::HostSpec& host : topology.hosts) addresses_.push_back(host.address);
  const auto plan = topology.plan();
  if (!plan) throw std::logic_error(plan.error().text);
  configs_.assign(plan->configs.begin(),
                  plan->configs.begin() + static_cast<std::ptrdiff_t>(racks));
  for (const fabric::SwitchConfig& config : configs_) routes_.emplace_back(config);
}

RackRules Racks::count(std::size_t rack, bool with_senders_host,
                       std::uint64_t groups_per_host) const {
  RackRules rules;
  const std::size_t hosts = addresses_.size();
  for (std::size_t sender = 0; sender < hosts; ++sender) {
    std::uint64_t two_racks = 0;
    for (std::size_t a = 0; a < hosts; ++a) {
      for (std::size_t b = a + 1; b < hosts; ++b) {
        if (!with_senders_host && (a == sender || b == sender)) continue;
        const bool is_one_rack = rack_of(a) == rack_of(b);
        // Data that neither comes from this rack nor goes to it does not pass its switch.
        if (rack_of(sender) != rack && rack_of(a) != rack && rack_of(b) != rack) continue;
        if (!is_one_rack && groups_per_host > 0 && two_racks == groups_per_host) continue;
        if (!has_rule(sender, rack, {a, b}, with_senders_host)) continue;
        if (!is_one_rack) ++two_racks;
        ++(is_one_rack ? rules.one_rack : rules.two_racks);
      }
    }
  }
  return rules;
}

std::vector<fabric::Branch> Racks::branches(std::size_t rack, const Hosts& receivers,
                                            wire::PortId ingress) const {
  std::vector<wire::MrpMember> members(receivers.size());
  for (std::size_t i = 0; i < receivers.size(); ++i) members[i].host = addresses_[receivers[i]];
  std::size_t unreachable = 0;
  auto found = fabric::bifurcate(configs_[rack], routes_[rack], members, ingress, unreachable);
  if (found.empty()) throw std::logic_error("a host of a rack can't be reached");
  return found;
}

// As in the switch: data that goes on over one path needs no rule, unless the path is to the
// receiver itself.
bool Racks::has_rule(std::size_t sender, std::size_t rack, const Hosts& receivers,
                     bool with_senders_host) const {
  const auto needs_rule = [](const std::vector<fabric::Branch>& all) {
    return all.size() > 1 || all.front().is_here;
  };
  // No copy goes back to its ingress, so the sender's own host is reached only if that is unknown.
  const wire::PortId from = with_senders_host ? wire::PortId() : port(sender % per_rack_);
  const auto at_sender = branches(rack_of(sender), receivers, from);
  if (rack_of(sender) == rack) return needs_rule(at_sender);
  for (const fabric::Branch& branch : at_sender) {
    if (branch.is_one() || rack_of(receivers[branch.receivers.front()]) != rack) continue;
    Hosts behind;
    for (const std::uint8_t i : branch.receivers) behind.push_back(receivers[i]);
    return needs_rule(branches(rack, behind, port(per_rack_)));
  }
  return false;
}

}  // namespace cepheus::sim
