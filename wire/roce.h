// A RoCEv2 packet's headers, decoded from a Frame and encoded into one.
#pragma once

#include <optional>

#include "wire/bth.h"
#include "wire/ethernet.h"
#include "wire/extension_headers.h"
#include "wire/frame.h"
#include "wire/ipv4_header.h"
#include "wire/udp.h"

namespace cepheus::wire {

// Offsets in Frame::bytes: IPv4 carries no options in RoCEv2 frames of ours.
inline constexpr std::size_t kIpOffset = Ethernet::kSize;
inline constexpr std::size_t kUdpOffset = kIpOffset + Ipv4Header::kSize;
inline constexpr std::size_t kBthOffset = kUdpOffset + Udp::kSize;
inline constexpr std::size_t kExtensionOffset = kBthOffset + Bth::kSize;

// What RoCEv2 packets and other datagrams begin with: decoded once, both codecs go on from there.
struct UdpHeaders {
  Ethernet ethernet;
  Ipv4Header ip;
  Udp udp;

  // False, and nothing to rely on, unless the frame is UDP over IPv4 and says where its headers end.
  // Lengths and checksums are left to who goes on.
  bool read(const Frame& frame);
};

// ip.total_length and udp.length are computed by emit.
struct RoceHeaders : UdpHeaders {
  RoceHeaders() {}  // provided, so that making one does not zero it first, padding and all

  Bth bth;
  // Valid where opcode_info(bth.opcode) says so; in wire order behind the BTH.
  Deth deth;
  Reth reth;
  AtomicEth atomic;
  Aeth aeth;
  AtomicAckEth atomic_ack;
  ImmDt imm;
  Ieth ieth;

  // Empty unless the frame is RoCEv2 with a known opcode and consistent lengths. The ICRC is not
  // checked.
  static std::optional<RoceHeaders> parse(const Frame& frame);
  static std::optional<RoceHeaders> parse(const Frame& frame, const UdpHeaders& outer);
  // Sets frame.header() and header_len for `payload_bytes` of payload (pad included) and marks the
  // ICRC deferred.
  void emit(Frame& frame, std::size_t payload_bytes) const;

 private:
  bool read_transport(const Frame& frame);
};

// A UDP datagram that is not RoCE (MRP). Payload = the datagram; the UDP checksum is made by emit
// and checked by parse (0 is accepted as "none").
struct UdpDatagram : UdpHeaders {
  static std::optional<UdpDatagram> parse(const Frame& frame);
  static std::optional<UdpDatagram> parse(const Frame& frame, const UdpHeaders& outer);
  // The frame's payload must be set or settable: `payload` is referred to (external) unless it fits
  // inline.
  void emit(Frame& frame, std::span<const std::uint8_t> payload,
            BufferRef buffer = kNoBuffer) const;
};

}  // namespace cepheus::wire
