// PROBE, to which a host's switch answers PROBED with what arrived (docs/protocol.md, "Probes"). A
// site finds the faults of its network by them.
//
// A datagram to a group's address; behind MrpHeader:
//   |0|    6    |     8     |      reply port       |
//   |     answer, bytes     |    length, bytes      |   of the answer's UDP payload; of the IP packet
//   |    TOS    |    TTL    |       VLAN tag        |
//   |                  source MAC                   |
//   |      source MAC       |      source port      |
//   |                     time                      |   microseconds of the switch's clock
//   |                                               |
//   |   destination port    |     largest, bytes    |   IP packet that the switch takes here
// PROBE has zeros from `length` on. A DROP may follow, about the group of a leader's PROBE:
//   |0|    7    |     4     |   kind    |     0     |
//   |       number          |         drops         |   drops so far
//   |                     repeat                    |   microseconds from the drop to the repeat
//   |                      NAK                      |   ... to the first NAK for a lost packet
// Behind the stated length, and behind the signature if there is one, a datagram may be longer: that
// is padding.
#pragma once

#include <optional>
#include <span>

#include "wire/mrp.h"

namespace cepheus::wire {

// What a switch has seen of a PROBE.
struct ProbeSight {
  std::uint16_t length = 0;  // of the IPv4 packet, bytes
  std::uint8_t tos = 0;
  std::uint8_t ttl = 0;
  std::uint16_t vlan_tag = 0xFFFF;  // tag control information (802.1Q); 0xFFFF: no tag
  Mac source_mac;                   // behind a router, the router's
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint64_t time_us = 0;
  std::uint16_t largest = 0;  // IPv4 packet that the switch takes from this host, bytes
  friend bool operator==(const ProbeSight&, const ProbeSight&) = default;
};

// Packets that a switch drops once, for the leader of their group.
enum class DropKind : std::uint8_t {
  kNone = 0,    // the leader asks for the report alone
  kLast = 1,    // the next packet of a host that ends a message
  kPacket = 2,  // a host's data packet: the one with that number of those that arrive, from 0
  kAck = 3,     // the next merged ACK to a host of all that it has sent
};

struct DropRecord {
  static constexpr std::size_t kSize = 16;
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFF;

  DropKind kind = DropKind::kNone;
  std::uint16_t number = 0;
  std::uint16_t drops = 0;  // so far; at most 65,535
  std::uint32_t repeat_us = kUnknown;
  std::uint32_t nak_us = kUnknown;
  friend bool operator==(const DropRecord&, const DropRecord&) = default;
};

struct Probe {
  static constexpr std::size_t kRecord = 32;  // bytes
  static constexpr std::size_t kMostSize = MrpHeader::kSize + kRecord + DropRecord::kSize;
  // MrpHeader::flags: the answer has the switch's own address as source, as a REJECT has. Otherwise
  // the group's, as data has.
  static constexpr std::uint16_t kFromSwitch = 1;

  // Of type PROBE or PROBED. seq: the sender's number. With a DROP, epoch and instance are those of
  // the group.
  MrpHeader header;
  std::uint16_t reply_port = 0;  // 0: the source port
  std::uint16_t answer_bytes = 0;
  ProbeSight seen;
  std::optional<DropRecord> drop;

  // Empty for other messages and malformed ones. `data` may be longer than the message.
  static std::optional<Probe> parse(std::span<const std::uint8_t> data);
  std::size_t size() const { return MrpHeader::kSize + kRecord + (drop ? DropRecord::kSize : 0); }
  std::size_t emit(std::span<std::uint8_t> out) const;  // bytes written, 0 if `out` is too small
};

// Whether a frame's bytes, from the Ethernet header on, are a datagram that begins as PROBE does.
bool looks_like_probe(std::span<const std::uint8_t> frame);

}  // namespace cepheus::wire
