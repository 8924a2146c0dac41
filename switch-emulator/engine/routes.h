// Layer 3 forwarding: the ports that lead to a host, and the choice among them for a flow or a
// group.
//
// Hosts at one switch, their attachment switch, form one class, and so does each host on an own
// port. A group chooses a port once per class, so that its tree stays a tree: one that is in the
// tree already, else the one that fewest groups use. A port serves a class unless it is down, or
// the neighbour there has no route to that switch (trunks.h).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "switch-emulator/engine/call.h"
#include "wire/ipv4_header.h"

namespace cepheus::fabric {

// Hash of all fields that name a flow, different in each switch (`self`). If all switches had the
// same hash, the flows on one port would all take one port in the next stage.
std::uint32_t flow_hash(const wire::Mac& self, const Frame& frame, const wire::Ipv4Header& ip);

class Routes {
 public:
  using ClassNo = std::uint32_t;

  explicit Routes(const SwitchConfig& config);

  void set_up(PortId port, bool up) { up_[port.value()] = up; }
  bool is_up(PortId port) const { return up_[port.value()]; }
  // The neighbour at `port` has routes to all attachment switches but these. True if that is new.
  bool set_unreachable(PortId port, std::span<const Ipv4> attachments);
  // Attachment switches that no port serves, in their order.
  void list_unreachable(std::vector<Ipv4>& attachments) const;

  // The host's class: itself on an own port, or all hosts at its attachment switch. Keeps what it
  // found, so calls must not overlap.
  std::optional<ClassNo> find(Ipv4 host) const;
  const std::vector<PortId>& ports(ClassNo c) const { return classes_[c].ports; }
  bool serves(PortId port, ClassNo c) const {
    return up_[port.value()] && !(lacks_[port.value()].size() > c && lacks_[port.value()][c]);
  }
  std::size_t class_count() const { return classes_.size(); }

  // Next hop of a unicast packet: a flow keeps its port while that serves, and avoids its ingress.
  std::optional<PortId> next_hop(Ipv4 destination, std::uint32_t flow, PortId ingress) const;

  // Forwards a unicast IPv4 frame: new MACs, time to live one less, or dropped with a reason.
  void forward(Call& call, const Frame& frame, const wire::Ipv4Header& ip) const;

 private:
  std::optional<ClassNo> look_up(Ipv4 host) const;

  struct Class {
    std::vector<PortId> ports;
    Ipv4 attachment;
  };

  std::shared_ptr<const net::Attachments> attachments_;  // of all hosts; null: there are no others
  std::unordered_map<Ipv4, ClassNo> own_;                // hosts on own ports
  std::unordered_map<Ipv4, ClassNo> behind_;             // attachment switches that have routes
  std::vector<Class> classes_;
  // Destinations that were found last, at a place by their hash. Maps of many hosts are seldom in
  // the processor's cache. Bound: own_, attachments_ and behind_ never change.
  struct Found {
    Ipv4 host;
    ClassNo number = kUnknown;
  };
  static constexpr ClassNo kUnknown = ~ClassNo{0};
  static constexpr std::size_t kFound = 64;
  mutable std::array<Found, kFound> found_{};
  std::vector<bool> up_;
  std::vector<std::vector<bool>> lacks_;  // by port and class; empty: a port serves all
};

}  // namespace cepheus::fabric
