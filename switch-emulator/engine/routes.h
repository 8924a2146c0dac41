// Layer 3 forwarding: which ports lead to a host, and which of them a flow or a group takes.
//
// Hosts that are reached over the same equal-cost ports form one class; a group chooses a port once
// per class, so that its tree stays a tree: one that is in the tree already, else the one that
// fewest groups use.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "switch-emulator/engine/call.h"
#include "wire/ipv4_header.h"

namespace cepheus::fabric {

// Of all the bits that name a flow, and another one in each switch (`self`): where all hash alike,
// what one stage has sent one way the next stage has one way left for.
std::uint32_t flow_hash(const wire::Mac& self, const Frame& frame, const wire::Ipv4Header& ip);

class Routes {
 public:
  using ClassNo = std::uint32_t;

  explicit Routes(const SwitchConfig& config);

  void set_up(PortId port, bool up) { up_[port.value()] = up; }
  bool is_up(PortId port) const { return up_[port.value()]; }

  // Host's class: the host itself on an own port, or a set of equal-cost ports.
  std::optional<ClassNo> find(Ipv4 host) const;
  const std::vector<PortId>& ports(ClassNo c) const { return classes_[c]; }
  std::size_t class_count() const { return classes_.size(); }

  // Next hop of a unicast packet: a flow keeps its port while that is up, and avoids the port it
  // came from.
  std::optional<PortId> next_hop(Ipv4 destination, std::uint32_t flow, PortId ingress) const;

  // Forwards a unicast IPv4 frame: new MACs, time to live one less, or dropped with a reason.
  void forward(Call& call, const Frame& frame, const wire::Ipv4Header& ip) const;

 private:
  std::unordered_map<Ipv4, ClassNo> class_of_;
  std::vector<std::vector<PortId>> classes_;
  std::vector<bool> up_;
};

}  // namespace cepheus::fabric
