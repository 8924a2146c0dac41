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

// Offsets in Frame::bytes: our RoCEv2 frames have no IPv4 options.
inline constexpr std::size_t kIpOffset = Ethernet::kSize;
inline constexpr std::size_t kUdpOffset = kIpOffset + Ipv4Header::kSize;
inline constexpr std::size_t kBthOffset = kUdpOffset + Udp::kSize;
inline constexpr std::size_t kExtensionOffset = kBthOffset + Bth::kSize;

static_assert(kDataOverhead == kExtensionOffset + Reth::kSize + ImmDt::kSize + 4);

// The common start of RoCEv2 packets and other datagrams: decoded once, for both codecs.
struct UdpHeaders {
  Ethernet ethernet;
  Ipv4Header ip;
  Udp udp;

  // False, with undefined content, unless the frame is UDP over IPv4 with a known header length.
  // The caller checks lengths and checksums.
  bool read(const Frame& frame);
};

// ip.total_length and udp.length are computed by emit.
struct RoceHeaders : UdpHeaders {
  RoceHeaders() {}  // provided, so that construction does not zero it

  Bth bth;
  // Valid where opcode_info(bth.opcode) has them; in wire order behind the BTH.
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
  // Sets frame.header() and header_len for `payload_bytes` of payload (pad included), and marks the
  // ICRC deferred.
  void emit(Frame& frame, std::size_t payload_bytes) const;

 private:
  bool read_transport(const Frame& frame);
};

// A UDP datagram that is not RoCE (MRP). Payload = the datagram. emit computes the UDP checksum,
// and parse checks it (0 is accepted as "none").
struct UdpDatagram : UdpHeaders {
  static std::optional<UdpDatagram> parse(const Frame& frame);
  static std::optional<UdpDatagram> parse(const Frame& frame, const UdpHeaders& outer);
  // Sets the frame's payload: `payload` is referred to (external) unless it fits inline.
  void emit(Frame& frame, std::span<const std::uint8_t> payload,
            BufferRef buffer = kNoBuffer) const;
};

}  // namespace cepheus::wire
