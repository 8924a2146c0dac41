// Layer 3 forwarding: which ports lead to a host, and which of them a flow or a group takes.
//
// Hosts at one switch, their leaf, form one class, and so does each host on an own port; a group
// chooses a port once per class, so that its tree stays a tree: one that is in the tree
// already, else the one that fewest groups use. A port serves a class unless it is down, or the
// neighbour there has no way to that leaf itself (trunks.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
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
  // The neighbour at `port` has a way to all leaves but these. True if that is new.
  bool set_unreachable(PortId port, std::span<const Ipv4> leaves);
  // Leaves that no port serves, in their order.
  void list_unreachable(std::vector<Ipv4>& leaves) const;

  // Host's class: the host itself on an own port, or those at its leaf.
  std::optional<ClassNo> find(Ipv4 host) const;
  const std::vector<PortId>& ports(ClassNo c) const { return classes_[c].ports; }
  bool serves(PortId port, ClassNo c) const {
    return up_[port.value()] && !(lacks_[port.value()].size() > c && lacks_[port.value()][c]);
  }
  std::size_t class_count() const { return classes_.size(); }

  // Next hop of a unicast packet: a flow keeps its port while that serves, and avoids the port it
  // came from.
  std::optional<PortId> next_hop(Ipv4 destination, std::uint32_t flow, PortId ingress) const;

  // Forwards a unicast IPv4 frame: new MACs, time to live one less, or dropped with a reason.
  void forward(Call& call, const Frame& frame, const wire::Ipv4Header& ip) const;

 private:
  struct Class {
    std::vector<PortId> ports;
    Ipv4 leaf;
  };

  std::shared_ptr<const net::LeafOfHost> leaf_of_host_;  // of all hosts; may be null
  std::unordered_map<Ipv4, ClassNo> own_;                // hosts on own ports
  std::unordered_map<Ipv4, ClassNo> behind_;             // leaves that routes lead to
  std::vector<Class> classes_;
  std::vector<bool> up_;
  std::vector<std::vector<bool>> lacks_;  // by port and class; empty: a port lacks none
};

}  // namespace cepheus::fabric
