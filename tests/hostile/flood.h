// Frames of one kind without end, as fast as a core makes them; what comes back is thrown away.
#pragma once

#include <span>

#include "tests/hostile/place.h"
#include "wire/mrp.h"

namespace cepheus::hostile {

class Flood : public Attack {
 public:
  explicit Flood(const Place& place) : place_(place), port_(attach(place)) {}
  void step() override;

 protected:
  // False if there is no slot for its payload now.
  virtual bool make(wire::Frame& frame) = 0;

  // `bytes` as the frame's payload; of a long one the slot is left as it is unless `copied`: a flood
  // costs its host as little as can be.
  bool set_payload(wire::Frame& frame, std::span<const std::uint8_t> bytes, bool copied = false);
  wire::RoceHeaders roce_to(wire::Ipv4 to, wire::Opcode opcode, wire::Qpn qpn) const;
  wire::UdpDatagram datagram_to(wire::Ipv4 to, std::uint16_t udp_port) const;
  bool make_registration(wire::Frame& frame, const wire::MrpMessage& message);

  const Place place_;
  std::unique_ptr<fabric::HostPort> port_;
};

}  // namespace cepheus::hostile
