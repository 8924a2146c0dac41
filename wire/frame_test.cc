#include "wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/byte_order.h"
#include "wire/roce.h"
#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

using Packet = std::vector<std::uint8_t>;

// An IPv4 packet of `protocol` with `body` behind the IPv4 header.
Packet ipv4_packet(std::uint8_t protocol, const Packet& body) {
  Packet packet(kUdpOffset + body.size());
  Ethernet{}.emit(std::span(packet).first<Ethernet::kSize>());
  Ipv4Header ip;
  ip.protocol = protocol;
  ip.total_length = static_cast<std::uint16_t>(Ipv4Header::kSize + body.size());
  ip.source = Ipv4(10, 0, 0, 1);
  ip.destination = Ipv4(10, 0, 0, 2);
  ip.emit(std::span(packet).subspan<kIpOffset, Ipv4Header::kSize>());
  std::copy(body.begin(), body.end(), packet.begin() + kUdpOffset);
  return packet;
}

Packet udp_packet(std::uint16_t port, const Packet& body) {
  Packet datagram(Udp::kSize + body.size());
  Udp udp;
  udp.destination_port = port;
  udp.length = static_cast<std::uint16_t>(datagram.size());
  udp.emit(std::span(datagram).first<Udp::kSize>());
  std::copy(body.begin(), body.end(), datagram.begin() + Udp::kSize);
  return ipv4_packet(Ipv4Header::kUdp, datagram);
}

// A RoCE datagram's body: BTH of `opcode` and `rest` zero bytes.
Packet roce_body(std::uint8_t opcode, std::size_t rest, std::uint8_t pad = 0) {
  Packet body(Bth::kSize + rest);
  body[0] = opcode;
  body[1] = static_cast<std::uint8_t>(pad << 4);
  return body;
}

void expect_split(const Packet& packet, std::size_t header, std::size_t payload, Icrc icrc) {
  const auto frame = Frame::from_bytes(packet);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header_len, header);
  EXPECT_EQ(frame->payload_len, payload);
  EXPECT_EQ(frame->icrc_state, icrc);
  EXPECT_EQ(frame->payload().data(), packet.data() + header);  // referred to, not copied
  const Packet out = bytes_of(*frame);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), packet.begin()));
}

TEST(Frame, SplitsEveryKindOfPacketBehindItsLastKnownHeader) {
  Packet arp(60);
  store_be16(arp.data() + 12, Ethernet::kArp);
  expect_split(arp, 14, 46, Icrc::kNone);
  expect_split(ipv4_packet(1, Packet(64)), 34, 64, Icrc::kNone);  // ICMP
  expect_split(ipv4_packet(1, {}), 34, 0, Icrc::kNone);
  expect_split(udp_packet(kDefaultMrpUdpPort, Packet(28)), 42, 28, Icrc::kNone);
  expect_split(udp_packet(kRoceUdpPort, roce_body(0x04, 68)), 54, 64, Icrc::kPresent);
  expect_split(udp_packet(kRoceUdpPort, roce_body(0x0A, 84)), 70, 64, Icrc::kPresent);
  expect_split(udp_packet(kRoceUdpPort, roce_body(0x81, 20)), 70, 0, Icrc::kPresent);  // CNP
}

TEST(Frame, KeepsAShortEthernetFrameWithoutPayload) {
  Packet bare(14);
  store_be16(bare.data() + 12, 0x88CC);
  expect_split(bare, 14, 0, Icrc::kNone);
  bare.pop_back();
  EXPECT_FALSE(Frame::from_bytes(bare));
}

TEST(Frame, RemovesThePaddingOfAShortFrame) {
  Packet packet = udp_packet(kDefaultMrpUdpPort, Packet(4, 0x11));
  packet.resize(60);
  expect_split(packet, 42, 4, Icrc::kNone);
  packet = ipv4_packet(1, Packet(8, 0x11));
  packet.resize(60);
  expect_split(packet, 34, 8, Icrc::kNone);
}

TEST(Frame, TreatsFragmentsAndOptionsAsOpaque) {
  Packet fragment = udp_packet(kRoceUdpPort, roce_body(0x04, 68));
  fragment[kIpOffset + 6] = 0x20;
  expect_split(fragment, 14, fragment.size() - 14, Icrc::kNone);
  Packet options = udp_packet(kRoceUdpPort, roce_body(0x04, 68));
  options[kIpOffset] = 0x46;
  expect_split(options, 14, options.size() - 14, Icrc::kNone);
}

TEST(Frame, RefusesLengthsThatDoNotAddUp) {
  const Packet good = udp_packet(kRoceUdpPort, roce_body(0x04, 68));
  ASSERT_TRUE(Frame::from_bytes(good));
  const auto with_total_length = [&](std::size_t n) {
    Packet packet = good;
    auto ip = *Ipv4Header::parse(std::span(packet).subspan(kIpOffset));
    ip.total_length = static_cast<std::uint16_t>(n);
    ip.emit(std::span(packet).subspan<kIpOffset, Ipv4Header::kSize>());
    return packet;
  };
  for (const std::size_t n : {std::size_t{0}, std::size_t{19}, good.size() - kIpOffset - 1,
                              good.size() - kIpOffset + 1, std::size_t{0xFFFF}}) {
    EXPECT_FALSE(Frame::from_bytes(with_total_length(n))) << n;
  }
  for (const std::uint32_t n : {0u, 7u, 87u, 89u}) {
    Packet packet = good;
    store_be16(packet.data() + kUdpOffset + 4, n);
    EXPECT_FALSE(Frame::from_bytes(packet)) << n;
  }
}

TEST(Frame, RefusesAWrongIpChecksum) {
  Packet packet = udp_packet(kRoceUdpPort, roce_body(0x04, 68));
  packet[kIpOffset + 8] ^= 1;
  EXPECT_FALSE(Frame::from_bytes(packet));
}

TEST(Frame, RefusesRoceOfUnknownOpcodeOrTooShortForItsHeaders) {
  for (int opcode = 0; opcode < 256; ++opcode) {
    const OpcodeInfo& info = opcode_info(static_cast<Opcode>(opcode));
    const auto byte = static_cast<std::uint8_t>(opcode);
    const std::size_t least = info.extension_bytes + 4u;
    EXPECT_EQ(Frame::from_bytes(udp_packet(kRoceUdpPort, roce_body(byte, 40))).has_value(),
              info.known);
    if (!info.known) continue;
    EXPECT_TRUE(Frame::from_bytes(udp_packet(kRoceUdpPort, roce_body(byte, least)))) << opcode;
    EXPECT_FALSE(Frame::from_bytes(udp_packet(kRoceUdpPort, roce_body(byte, least - 1)))) << opcode;
  }
}

TEST(Frame, RefusesMorePadThanPayload) {
  EXPECT_TRUE(Frame::from_bytes(udp_packet(kRoceUdpPort, roce_body(0x04, 8, 3))));
  EXPECT_FALSE(Frame::from_bytes(udp_packet(kRoceUdpPort, roce_body(0x04, 4, 1))));
}

TEST(Frame, RefusesANonIpFrameBeyondItsLengthField) {
  Packet jumbo(14 + 65535);
  store_be16(jumbo.data() + 12, 0x88CC);
  EXPECT_TRUE(Frame::from_bytes(jumbo));
  jumbo.push_back(0);
  EXPECT_FALSE(Frame::from_bytes(jumbo));
}

TEST(Frame, IsNotWrittenIntoTooSmallABuffer) {
  const Packet packet = udp_packet(kRoceUdpPort, roce_body(0x04, 68));
  const auto frame = Frame::from_bytes(packet);
  ASSERT_TRUE(frame);
  Packet out(packet.size() - 1, 0xA5);
  EXPECT_EQ(frame->to_bytes(out), 0u);
  EXPECT_EQ(out, Packet(packet.size() - 1, 0xA5));
}

TEST(Frame, HoldsASmallPayloadInline) {
  Packet packet = udp_packet(kRoceUdpPort, roce_body(0x04, 36));
  for (std::size_t i = 0; i < 32; ++i) packet[kExtensionOffset + i] = static_cast<std::uint8_t>(i);
  auto frame = Frame::from_bytes(packet, 5);
  ASSERT_TRUE(frame);
  ASSERT_TRUE(frame->payload_fits_inline(32));
  EXPECT_TRUE(frame->payload_fits_inline(50));
  EXPECT_FALSE(frame->payload_fits_inline(51));
  frame->set_inline_payload(frame->payload());
  EXPECT_EQ(frame->external, nullptr);
  EXPECT_EQ(frame->ref, kNoBuffer);
  Packet out(frame->size());
  frame->to_bytes(out);
  EXPECT_EQ(out, packet);
}

}  // namespace
}  // namespace cepheus::wire
