// Queues, pauses and priorities of a live fabric, on a time that the test moves: the same as in the
// simulator.
#pragma once

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/shapes.h"
#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/live/datapath/test_datapath.h"
#include "switch-emulator/live/status/readings.h"
#include "wire/mrp.h"
#include "wire/reduction.h"
#include "wire/test_bytes.h"

namespace cepheus::live {

using namespace std::chrono_literals;
using fabric::BareClient;

inline constexpr std::uint32_t kStreamPackets = 600;
inline constexpr std::size_t kPayload = 1024;

inline net::LinkConfig fast(bool lossless) {
  net::LinkConfig link;
  link.rate = wire::BitRate{1'000'000'000};
  link.delay = 20us;
  link.queue_bytes = 16 << 10;
  link.pfc.on = lossless;
  return link;
}

// h0, on a fast link, sends to h1 on a link of a tenth of the rate; over a trunk, if `switches`
// is 2.
inline net::Topology narrowing(bool lossless, std::size_t switches = 1) {
  net::Topology topology = switches == 1 ? net::Topology::star(2, fast(lossless))
                                         : net::leaf_spine(2, 1, 1, fast(lossless));
  topology.hosts[1].down.rate = wire::BitRate{100'000'000};
  return topology;
}

inline net::LinkConfig faster(bool lossless) {
  net::LinkConfig link = fast(lossless);
  link.rate = wire::BitRate{10'000'000'000};
  return link;
}

class Queues : public DatapathTest {
 protected:
  wire::Frame packet(std::uint32_t number, wire::Opcode opcode = wire::Opcode::kRcSendOnly) {
    return packet_between(0, 1, number, opcode);
  }
  wire::Frame packet_between(std::size_t from, std::size_t to, std::uint32_t number,
                             wire::Opcode opcode = wire::Opcode::kRcSendOnly) {
    wire::RoceHeaders headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = wire::Psn(number);
    headers.ip.source = datapath->identity(from).address;
    headers.ip.destination = datapath->identity(to).address;
    wire::Frame frame;
    if (opcode == wire::Opcode::kCnp) {
      headers.emit(frame, 16);
      frame.set_inline_payload(std::array<std::uint8_t, 16>{});
    } else {
      headers.emit(frame, bytes_.size());
      frame.set_external_payload(bytes_, 0);
    }
    return frame;
  }
  static std::uint32_t psn_of(const fabric::Descriptor& got) {
    wire::Frame frame;
    EXPECT_TRUE(fabric::read_descriptor(got, frame));
    return wire::RoceHeaders::parse(frame)->bth.psn.value();
  }
  // Of the packets that h0 sends at full speed, the numbers of those that arrive, if the fabric
  // polls every `step`, and the receiver reads every `look`, at once by default.
  std::vector<std::uint32_t> stream(wire::Duration step, std::uint32_t packets = kStreamPackets,
                                    wire::Duration look = {}) {
    BareClient sender = attach(0), receiver = attach(1);
    std::vector<std::uint32_t> arrived;
    std::uint32_t sent = 0;
    wire::Instant next_look = now;
    for (const wire::Instant until = now + 5s; now < until && arrived.size() < packets;
         now += step) {
      while (sent < packets && sender.tx.free_entries() > 0) {
        const auto slot = sender.take_slot();
        if (!slot) break;
        sender.put(packet(sent++), *slot);
      }
      datapath->poll(now);
      if (now < next_look) continue;
      next_look = now + look;
      while (const auto got = receiver.take()) arrived.push_back(psn_of(*got));
    }
    poll_for(50ms);  // the rest: ends of pauses
    while (const auto got = receiver.take()) arrived.push_back(psn_of(*got));
    return arrived;
  }
  static wire::McstId reduction(std::size_t number) {
    return wire::McstId(198, 18, 0, static_cast<std::uint8_t>(number));
  }
  // Of `leader` and `other`, by their `clients`. `bytes_` is what each contributes.
  void start_reduction(std::span<BareClient> clients, std::size_t leader, std::size_t other,
                       std::uint16_t window, wire::McstId group = reduction(0)) {
    wire::MrpMessage message = wire::mrp_message(wire::MrpType::kRegister, group);
    message.header.flags = wire::MrpHeader::kLossEnds;
    message.reduction = wire::MrpReduction{wire::MrpReduction::kValues,
                                           static_cast<std::uint16_t>(bytes_.size()), window};
    for (const std::size_t host : {leader, other}) message.add({address(host), wire::Qpn(7)});
    send_mrp(clients[leader], leader, message);
    poll_for(200us);
    message = wire::mrp_message(wire::MrpType::kConfirm, group);
    message.header.flags = static_cast<std::uint16_t>(wire::MrpType::kRegister);
    message.add({address(other), wire::Qpn(7)});
    send_mrp(clients[other], other, message);
    poll_for(200us);
    message = wire::mrp_message(wire::MrpType::kActivate, group);
    message.header.flags = 1;
    send_mrp(clients[leader], leader, message);
    poll_for(1ms);
    for (const std::size_t host : {leader, other}) take_all(clients[host]);
  }
  void contribute(BareClient& client, std::size_t host, std::uint32_t unit,
                  wire::McstId group = reduction(0)) {
    wire::RoceHeaders headers;
    headers.ip = {.source = address(host), .destination = group};
    headers.bth.opcode = wire::Opcode::kRcSendOnlyImm;
    headers.bth.destination_qp = wire::kVirtualQpn;
    headers.bth.psn = wire::group_start_psn(group, 1) + static_cast<std::int32_t>(unit);
    headers.imm.value = wire::ReductionImm{1, 0, 1, static_cast<std::uint16_t>(unit)}.value();
    wire::Frame frame;
    headers.emit(frame, bytes_.size());
    frame.set_external_payload(bytes_, 0);
    client.put(frame, client.take_slot().value());
    datapath->wake(host);
  }
  // h0 sends to h2, which does not read, until the switch before `neighbour` is paused.
  void fill_until_paused(BareClient& sender, const std::string& neighbour) {
    const std::vector<std::uint8_t> small =
        std::exchange(bytes_, std::vector<std::uint8_t>(kPayload));
    for (std::uint32_t sent = 0; counted(neighbour)["pauses_received"] == 0; ++sent) {
      ASSERT_LT(sent, 2 * fabric::kFrameRing);
      sender.put(packet_between(0, 2, sent), *sender.take_slot());
      poll_for(10us);
    }
    bytes_ = small;
  }
  // The units of the results that have come.
  static std::vector<std::uint32_t> take_results(BareClient& client) {
    std::vector<std::uint32_t> results;
    while (const auto got = client.take()) {
      wire::Frame frame;
      EXPECT_TRUE(fabric::read_descriptor(*got, frame));
      const auto headers = wire::RoceHeaders::parse(frame);
      if (!headers || headers->bth.opcode != wire::Opcode::kRcSendOnlyImm) continue;
      results.push_back(headers->imm.value & 0xFFFF);
    }
    return results;
  }
  // Frames dropped anywhere, by any name.
  std::uint64_t dropped() {
    std::uint64_t sum = 0;
    for (const auto& [name, value] : counted()) {
      if (name.find("drop") != std::string::npos) sum += value;
    }
    return sum;
  }
  // Totals of all ports of all switches, by name; and those of one neighbour.
  std::map<std::string, std::uint64_t> counted(const std::string& neighbour = {}) {
    std::map<std::string, std::uint64_t> sums;
    for (const SwitchStatus& at :
         datapath->reporting().status([](const auto& slice) { slice(); })) {
      for (const PortStatus& port : at.ports) {
        if (!neighbour.empty() && port.name != neighbour) continue;
        for (const auto& each : readings<PortStatus>()) sums[each.full_name] += each.of(port);
        sums["link_dropped_queue_full"] += port.out.dropped_queue_full;
      }
    }
    return sums;
  }
  static std::vector<std::uint32_t> all(std::uint32_t packets = kStreamPackets) {
    std::vector<std::uint32_t> numbers(packets);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(kPayload, 0x33);
};

}  // namespace cepheus::live
