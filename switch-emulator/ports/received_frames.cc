// A received frame becomes a Frame with its payload in a slot, or is dropped and counted: in a VLAN
// (but PROBEs pass, so that the ladder can name the VLAN), longer than the MTU, malformed, or no
// slot is free. A checksum that the kernel left to hardware is completed first.
#include "switch-emulator/ports/received_frames.h"

#include <cstddef>

#include "wire/byte_order.h"
#include "wire/ethernet.h"
#include "wire/ipv4_header.h"
#include "wire/probe.h"
#include "wire/roce.h"

namespace cepheus::fabric {

namespace {

constexpr std::uint16_t kVlanType = 0x8100, kVlanId = 0x0FFF;  // IEEE 802.1Q

bool is_probe(std::span<const std::uint8_t> frame, const wire::Ipv4Prefix& groups) {
  if (!wire::looks_like_probe(frame)) return false;
  const auto* destination = frame.data() + wire::kIpOffset + wire::ipv4::kDestinationOffset;
  return groups.contains(wire::Ipv4(wire::load_be32(destination)));
}

// A tag of VLAN 0 has a priority only (IEEE 802.1Q, 9.6).
bool is_in_vlan(const InterfaceDriver::Received& received) {
  return received.vlan_tag != wire::Frame::kUntagged && (received.vlan_tag & kVlanId) != 0;
}

// A driver that removes no tag leaves it where the ether type is.
bool has_tag(std::span<const std::uint8_t> frame) {
  constexpr std::size_t kType = wire::Ethernet::kSize - 2;
  return frame.size() >= wire::Ethernet::kSize &&
         wire::load_be16(frame.data() + kType) == kVlanType;
}

}  // namespace

std::optional<PortCounter> flaw_of(const InterfaceDriver::Received& received,
                                   std::uint32_t largest_frame, const wire::Ipv4Prefix& groups) {
  if ((is_in_vlan(received) && !is_probe(received.bytes, groups)) || has_tag(received.bytes)) {
    return PortCounter::kDropTagged;
  }
  if (received.truncated || received.bytes.size() > largest_frame) {
    return PortCounter::kDropOversize;
  }
  return std::nullopt;
}

std::optional<PortCounter> take_in(PayloadPools& pools, std::uint32_t pool,
                                   const InterfaceDriver::Received& received, wire::Frame& frame) {
  if (received.checksum_missing) complete_checksum(received.bytes);
  const auto parsed = wire::Frame::from_bytes(received.bytes);
  if (!parsed) return PortCounter::kDropMalformed;
  frame = *parsed;
  frame.vlan_tag = received.vlan_tag;
  const auto payload = frame.payload();
  if (frame.payload_fits_inline(payload.size())) {
    frame.set_inline_payload(payload);
  } else if (payload.size() > pools.geometry().slot_bytes) {
    return PortCounter::kDropOversize;
  } else if (!pools.copy_in(pool, frame)) {
    return PortCounter::kDropNoSlot;
  }
  return std::nullopt;
}

constexpr std::uint8_t kTcp = 6;
constexpr std::size_t kUdpChecksum = 6, kTcpChecksum = 16;  // offsets behind the IPv4 header

void complete_checksum(std::span<std::uint8_t> frame) {
  const auto ethernet = wire::Ethernet::parse(frame);
  if (!ethernet || ethernet->ether_type != wire::Ethernet::kIpv4) return;
  const auto packet = frame.subspan(wire::Ethernet::kSize);
  const auto ip = wire::Ipv4Header::parse(packet);
  if (!ip || ip->total_length > packet.size()) return;
  const bool udp = ip->protocol == wire::Ipv4Header::kUdp;
  if (!udp && ip->protocol != kTcp) return;
  const auto segment =
      packet.subspan(wire::Ipv4Header::kSize, ip->total_length - wire::Ipv4Header::kSize);
  const std::size_t at = udp ? kUdpChecksum : kTcpChecksum;
  if (segment.size() < at + 2) return;

  wire::store_be16(segment.data() + at, 0);
  std::uint64_t sum = wire::ipv4::sum_words(segment) + ip->protocol + segment.size();
  sum += std::uint64_t{ip->source.value()} + ip->destination.value();
  const std::uint16_t checksum = wire::ipv4::finish_checksum(sum);
  wire::store_be16(segment.data() + at, udp && checksum == 0 ? 0xFFFF : checksum);
}

}  // namespace cepheus::fabric
