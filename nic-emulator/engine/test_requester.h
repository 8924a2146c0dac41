// For tests: a requester with a hand-made peer.
#pragma once

#include <gtest/gtest.h>

#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {

// Host a's requests; the test answers as host b.
class Requester : public ::testing::Test {
 protected:
  explicit Requester(const QpOptions& options = {.mtu = 256}) : hosts_(options), a_(hosts_.a) {}

  Packet answer(std::uint32_t psn, wire::AckKind kind, std::uint8_t value = 31) {
    const NicConfig& b = hosts_.b.nic.config();
    wire::RoceHeaders h;
    h.ethernet = {b.gateway, b.mac, wire::Ethernet::kIpv4};
    h.ip.source = b.address;
    h.ip.destination = a_.nic.config().address;
    h.udp.source_port = 0xC000;
    h.bth.opcode = wire::Opcode::kRcAcknowledge;
    h.bth.destination_qp = a_.qpn;
    h.bth.psn = Psn(psn);
    h.aeth = {kind, value, 0};
    wire::Frame frame;
    h.emit(frame, 0);
    frame.payload_len = 0;
    frame.external = nullptr;
    Packet packet;
    packet.bytes.resize(frame.size());
    frame.to_bytes(packet.bytes);
    return packet;
  }
  void ack(std::uint32_t psn) { a_.deliver(answer(psn, wire::AckKind::kAck)); }
  void nak(std::uint32_t psn, wire::NakCode code = wire::NakCode::kSequenceError) {
    a_.deliver(answer(psn, wire::AckKind::kNak, static_cast<std::uint8_t>(code)));
  }
  void rnr(std::uint32_t psn, std::uint8_t timer) {
    a_.deliver(answer(psn, wire::AckKind::kRnrNak, timer));
  }

  static std::vector<std::uint32_t> psns(const std::vector<Packet>& packets) {
    std::vector<std::uint32_t> list;
    for (const Packet& p : packets) list.push_back(p.psn());
    return list;
  }
  std::vector<std::uint32_t> sent() { return psns(a_.transmit_all()); }
  void pass(Duration time) {
    hosts_.now += time;
    a_.tick();
  }

  TwoHosts hosts_;
  Host& a_;
};

}  // namespace cepheus::rnic::testing
