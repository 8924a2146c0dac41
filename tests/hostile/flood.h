// Frames of one kind without end, as fast as a core makes them; most discard what they receive.
#pragma once

#include <span>

#include "tests/hostile/scenario.h"
#include "wire/mrp.h"

namespace cepheus::hostile {

// The next of 4096 groups from `first` on. In the group of an earlier attack all packets would be
// repeats.
class FreshGroups {
 public:
  explicit FreshGroups(wire::McstId first) : first_(first) {}
  wire::McstId next() { return wire::McstId(first_.value() + ++made_ % 4096); }

 private:
  const wire::McstId first_;
  std::uint32_t made_ = 0;
};

class Flood : public Attack {
 public:
  explicit Flood(const Scenario& scenario) : scenario_(scenario), port_(attach(scenario)) {}
  void step() override;

 protected:
  // False if no slot is free for its payload.
  virtual bool make(wire::Frame& frame) = 0;
  virtual void on_received(const wire::Frame&) {}

  // `bytes` as the frame's payload. Unless `copied`, the slot of a long one keeps its content: a
  // flood costs its host as little as possible.
  bool set_payload(wire::Frame& frame, std::span<const std::uint8_t> bytes, bool copied = false);
  wire::RoceHeaders roce_to(wire::Ipv4 to, wire::Opcode opcode, wire::Qpn qpn) const;
  wire::UdpDatagram datagram_to(wire::Ipv4 to, std::uint16_t udp_port) const;
  bool make_registration(wire::Frame& frame, const wire::MrpMessage& message);

  const Scenario scenario_;
  std::unique_ptr<fabric::HostPort> port_;
};

}  // namespace cepheus::hostile
