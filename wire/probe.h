// PROBE, to which a host's switch answers PROBED with what arrived (docs/protocol.md, "Probes"). A
// site finds the faults of its network by them.
//
// A datagram to a group's address; behind MrpHeader:
//   |0|    6    |    10     |      reply port       |
//   |     answer, bytes     |    length, bytes      |   of the answer's UDP payload; of the IP packet
//   |    TOS    |    TTL    |       VLAN tag        |
//   |                  source MAC                   |
//   |      source MAC       |      source port      |
//   |                     time                      |   microseconds of the switch's clock
//   |                                               |
//   |   destination port    |     largest, bytes    |   IP packet that the switch takes here
//   |  doubts   |   cores   |           0           |   ProbeSight's bits; of the switch's thread
//   |                     lost                      |   frames that the box had no room for
// PROBE has zeros from `length` on. An ORDER may follow, about the group of a leader's PROBE:
//   |0|    7    |     9     |   kind    |     0     |
//   |       number          |         done          |   packets dropped and CNPs sent so far
//   |                     repeat                    |   microseconds from the drop to the repeat
//   |                      NAK                      |   ... to the first NAK for a lost packet
//   |                    packets                    |   of data since the leader's first ORDER,
//   |                    repeats                    |   ... those that had come before,
//   |                     NAKs                      |   ... NAKs for lost packets
//   |                     lost                      |   frames that the box had no room for
//   |   fill    |    TOS    |       RNR NAKs        |   percent; see OrderRecord
// Behind the stated length, and behind the signature if there is one, a datagram may be longer: that
// is padding.
#pragma once

#include <optional>
#include <span>

#include "wire/mrp.h"

namespace cepheus::wire {

// What a switch has seen of a PROBE, and knows of the port by which it came.
struct ProbeSight {
  // Bits of `doubts`: what speaks against the box's interface (ports/interface_check.h).
  static constexpr std::uint8_t kRoce = 1;     // RoCE hardware takes UDP port 4791 from it
  static constexpr std::uint8_t kMerging = 2;  // offloads join UDP packets
  static constexpr std::uint8_t kQueues = 4;   // copies may overtake each other

  std::uint16_t length = 0;  // of the IPv4 packet, bytes
  std::uint8_t tos = 0;
  std::uint8_t ttl = 0;
  std::uint16_t vlan_tag = 0xFFFF;  // tag control information (802.1Q); 0xFFFF: no tag
  Mac source_mac;                   // behind a router, the router's
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint64_t time_us = 0;
  std::uint16_t largest = 0;  // IPv4 packet that the switch takes from this host, bytes
  std::uint8_t doubts = 0;
  // Cores that the switch's thread may run on; 0: unknown, 255: that many or more.
  std::uint8_t cores = 0;
  std::uint32_t lost = 0;  // frames from and to this host that full rings and queues have cost
  friend bool operator==(const ProbeSight&, const ProbeSight&) = default;
};

// Orders of a group's leader to its switch.
enum class OrderKind : std::uint8_t {
  kNone = 0,    // the leader requests the report alone
  kLast = 1,    // it drops the next packet of a host that ends a message
  kPacket = 2,  // ... a host's data packet: the one with that number of those that arrive, from 0
  kAck = 3,     // ... the next merged ACK to a host of all that it has sent
  kCnp = 4,     // it answers each of the leader's next `number` data packets with a CNP
};

struct OrderRecord {
  static constexpr std::size_t kSize = 36;
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFF;

  OrderKind kind = OrderKind::kNone;
  std::uint16_t number = 0;
  std::uint16_t done = 0;  // packets dropped and CNPs sent so far; at most 65,535
  std::uint32_t repeat_us = kUnknown;
  std::uint32_t nak_us = kUnknown;
  std::uint32_t packets = 0;  // data packets of hosts at this switch since the leader's first ORDER
  std::uint32_t repeats = 0;  // ... those that had come before
  std::uint32_t naks = 0;     // NAKs for lost packets
  std::uint32_t lost = 0;     // frames of members that full rings and queues of this box have cost
  std::uint8_t fill = 0;      // most of the rings towards members since the last report, percent
  std::uint8_t tos = 0;       // of the last data packet of a host
  std::uint16_t rnr_naks = 0;  // of receivers that were not ready, modulo 2^16
  friend bool operator==(const OrderRecord&, const OrderRecord&) = default;
};

struct Probe {
  static constexpr std::size_t kRecord = 40;  // bytes
  static constexpr std::size_t kMostSize = MrpHeader::kSize + kRecord + OrderRecord::kSize;
  // MrpHeader::flags: the answer has the switch's own address as source, as a REJECT has. Otherwise
  // the group's, as data has.
  static constexpr std::uint16_t kFromSwitch = 1;

  // Of type PROBE or PROBED. seq: the sender's number. With an ORDER, epoch and instance are those of
  // the group.
  MrpHeader header;
  std::uint16_t reply_port = 0;  // 0: the source port
  std::uint16_t answer_bytes = 0;
  ProbeSight seen;
  std::optional<OrderRecord> order;

  // Empty for other messages and malformed ones. `data` may be longer than the message.
  static std::optional<Probe> parse(std::span<const std::uint8_t> data);
  std::size_t size() const { return MrpHeader::kSize + kRecord + (order ? OrderRecord::kSize : 0); }
  std::size_t emit(std::span<std::uint8_t> out) const;  // bytes written, 0 if `out` is too small
};

// Whether a frame's bytes, from the Ethernet header on, are a datagram that begins as PROBE does.
bool looks_like_probe(std::span<const std::uint8_t> frame);

}  // namespace cepheus::wire
