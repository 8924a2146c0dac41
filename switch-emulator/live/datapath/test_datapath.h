// For tests: a datapath with clients of several users, on a time that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/ports/bare_client.h"
#include "wire/mrp.h"
#include "wire/test_bytes.h"

namespace cepheus::live {

class DatapathTest : public testing::Test {
 protected:
  static wire::Ipv4 address(std::size_t host) {
    return wire::Ipv4(10, 0, 0, static_cast<std::uint8_t>(host + 1));
  }
  void build(const net::Topology& topology) {
    datapath = std::make_unique<Datapath>(topology, *topology.plan());
    datapath->start(now);
  }
  fabric::BareClient attach(std::size_t host, uid_t user = 1000) {
    const auto fds = *datapath->shared_port(host)->open({getpid(), user});
    datapath->attach(now, host);
    return fabric::BareClient(fds, datapath->pools().geometry(), static_cast<std::uint32_t>(host));
  }
  void poll_for(wire::Duration duration) {
    for (const wire::Instant until = now + duration; now < until;
         now += std::chrono::microseconds(50)) {
      datapath->poll(now);
    }
  }
  std::uint64_t counted(std::size_t host, fabric::PortCounter counter) {
    return datapath->shared_port(host)->counters()[counter];
  }
  void send_mrp(fabric::BareClient& client, std::size_t host, const wire::MrpMessage& message) {
    const auto bytes = wire::bytes_of(message);
    wire::UdpDatagram datagram;
    datagram.ip.source = address(host);
    datagram.ip.destination = message.header.mcst_id;
    datagram.udp.source_port = 40000;
    datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
    wire::Frame frame;
    datagram.emit(frame, bytes);
    client.put(frame, client.take_slot().value_or(0));
    datapath->poll(now);
  }
  // A datagram that is not RoCE.
  static wire::Frame plain_datagram(std::size_t from, std::size_t to,
                                    std::span<const std::uint8_t> payload) {
    wire::UdpDatagram datagram;
    datagram.ip.source = address(from);
    datagram.ip.destination = address(to);
    datagram.udp.source_port = datagram.udp.destination_port = 9;
    wire::Frame frame;
    datagram.emit(frame, payload);
    return frame;
  }
  static std::uint32_t take_all(fabric::BareClient& client) {
    std::uint32_t taken = 0;
    while (client.take()) ++taken;
    return taken;
  }

  wire::Instant now{std::chrono::hours(1)};
  std::unique_ptr<Datapath> datapath;
};

}  // namespace cepheus::live
