#include "wire/roce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "wire/byte_order.h"
#include "wire/icrc.h"
#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

using Packet = std::vector<std::uint8_t>;

RoceHeaders write_with_imm() {
  RoceHeaders h;
  h.ethernet.destination = Mac{{2, 0xCE, 198, 18, 0, 1}};
  h.ethernet.source = Mac{{2, 0xCE, 10, 0, 0, 1}};
  h.ip.source = Ipv4(10, 0, 0, 1);
  h.ip.destination = Ipv4(198, 18, 0, 1);
  h.udp.source_port = 49152;
  h.bth.opcode = Opcode::kRcWriteOnlyImm;
  h.bth.destination_qp = kVirtualQpn;
  h.bth.psn = Psn(77);
  h.reth = {0x7F0000001000, 0x1234, 5};
  h.imm = {0xCAFEBABE};
  h.bth.pad_count = 3;
  return h;
}

Frame frame_of(const RoceHeaders& h, std::span<const std::uint8_t> payload) {
  Frame frame;
  frame.bytes.fill(0xA5);
  h.emit(frame, payload.size());
  frame.set_inline_payload(payload);
  return frame;
}

const Packet kPayload = {'h', 'e', 'l', 'l', 'o', 0, 0, 0};

TEST(RoceHeaders, SurviveEmitAndParse) {
  const RoceHeaders h = write_with_imm();
  const Frame frame = frame_of(h, kPayload);
  EXPECT_EQ(frame.header_len, 74);
  EXPECT_EQ(frame.size(), 74u + 8 + 4);
  const auto parsed = RoceHeaders::parse(frame);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->ethernet, h.ethernet);
  EXPECT_EQ(parsed->bth, h.bth);
  EXPECT_EQ(parsed->reth, h.reth);
  EXPECT_EQ(parsed->imm, h.imm);
  EXPECT_EQ(parsed->ip.total_length, frame.size() - kIpOffset);
  EXPECT_EQ(parsed->udp.length, frame.size() - kUdpOffset);
  EXPECT_EQ(parsed->udp.checksum, 0);
}

TEST(RoceHeaders, EmitEveryKnownOpcodeSoThatItParses) {
  for (int i = 0; i < 256; ++i) {
    RoceHeaders h;
    h.bth.opcode = static_cast<Opcode>(i);
    if (!opcode_info(h.bth.opcode).known) continue;
    const Frame frame = frame_of(h, {});
    const Packet bytes = bytes_of(frame);
    const auto received = Frame::from_bytes(bytes);
    ASSERT_TRUE(received) << i;
    EXPECT_TRUE(check_icrc(*received)) << i;
    const auto parsed = RoceHeaders::parse(*received);
    ASSERT_TRUE(parsed) << i;
    EXPECT_EQ(parsed->bth, h.bth);
  }
}

TEST(RoceHeaders, EmitACongestionNotificationWithItsReservedBytesZero) {
  RoceHeaders h;
  h.bth.opcode = Opcode::kCnp;
  h.bth.becn = true;
  const Frame frame = frame_of(h, {});
  for (const std::uint8_t byte : frame.header().subspan(kExtensionOffset)) EXPECT_EQ(byte, 0);
}

TEST(RoceHeaders, CarryTheHeadersOfAtomicsAndInvalidation) {
  RoceHeaders h;
  h.atomic = {0x1122334455667788, 0x99AABBCC, 3, 4};
  h.aeth.msn = 5;
  h.atomic_ack.original = 6;
  h.ieth.rkey = 7;
  const auto round_trip = [&](Opcode opcode) {
    h.bth.opcode = opcode;
    return RoceHeaders::parse(frame_of(h, {})).value();
  };
  EXPECT_EQ(round_trip(Opcode::kRcFetchAdd).atomic, h.atomic);
  EXPECT_EQ(round_trip(Opcode::kRcCompareSwap).atomic, h.atomic);
  EXPECT_EQ(round_trip(Opcode::kRcAtomicAcknowledge).atomic_ack, h.atomic_ack);
  EXPECT_EQ(round_trip(Opcode::kRcAtomicAcknowledge).aeth, h.aeth);
  EXPECT_EQ(round_trip(Opcode::kRcSendOnlyInvalidate).ieth, h.ieth);
}

TEST(RoceHeaders, RefuseFramesThatContradictThemselves) {
  const Frame good = frame_of(write_with_imm(), kPayload);
  ASSERT_TRUE(RoceHeaders::parse(good));
  const auto refused = [&](auto&& damage) {
    Frame frame = good;
    damage(frame);
    return !RoceHeaders::parse(frame);
  };
  EXPECT_TRUE(refused([](Frame& f) { f.icrc_state = Icrc::kNone; }));
  EXPECT_TRUE(refused([](Frame& f) { f.header_len = kExtensionOffset - 1; }));
  EXPECT_TRUE(refused([](Frame& f) { f.header_len -= 4; }));
  EXPECT_TRUE(refused([](Frame& f) { f.payload_len += 1; }));
  EXPECT_TRUE(refused([](Frame& f) { f.payload_len = 2; }));
  EXPECT_TRUE(refused([](Frame& f) { f.bytes[12] = 0x86; }));            // EtherType
  EXPECT_TRUE(refused([](Frame& f) { f.bytes[kIpOffset + 9] = 6; }));    // protocol, checksum
  EXPECT_TRUE(refused([](Frame& f) { f.bytes[kUdpOffset + 3] ^= 1; }));  // port
  EXPECT_TRUE(refused([](Frame& f) { f.bytes[kUdpOffset + 5] ^= 1; }));  // UDP length
  EXPECT_TRUE(refused([](Frame& f) { f.bytes[kBthOffset] = 0xFF; }));    // opcode
  EXPECT_TRUE(refused([](Frame& f) { f.bytes[kBthOffset] = 0x0A; }));    // other header length
}

TEST(RoceHeaders, RefuseMorePadThanPayload) {
  RoceHeaders h = write_with_imm();
  h.bth.pad_count = 3;
  EXPECT_TRUE(RoceHeaders::parse(frame_of(h, std::span(kPayload).first(3))));
  EXPECT_FALSE(RoceHeaders::parse(frame_of(h, std::span(kPayload).first(2))));
}

UdpDatagram mrp_datagram() {
  UdpDatagram d;
  d.ip.source = Ipv4(10, 0, 0, 1);
  d.ip.destination = Ipv4(198, 18, 0, 1);
  d.udp.source_port = kDefaultMrpUdpPort;
  d.udp.destination_port = kDefaultMrpUdpPort;
  return d;
}

TEST(UdpDatagram, HasTheChecksumOfRfc768) {
  // 10.0.0.1:1 -> 10.0.0.2:2, "abc": summed by hand.
  UdpDatagram d;
  d.ip.source = Ipv4(10, 0, 0, 1);
  d.ip.destination = Ipv4(10, 0, 0, 2);
  d.udp.source_port = 1;
  d.udp.destination_port = 2;
  Frame frame;
  const Packet payload = {'a', 'b', 'c'};
  d.emit(frame, payload);
  // 0a00+0001+0a00+0002 + 0011+000b + 0001+0002+000b + 6162+6300 = d88f; its complement is 2770.
  EXPECT_EQ(load_be16(frame.bytes.data() + kUdpOffset + 6), 0x2770);
  EXPECT_TRUE(UdpDatagram::parse(frame));
}

RC_GTEST_PROP(UdpDatagram, SurvivesEmitAndParse, (const Packet& small)) {
  Packet payload = small;
  payload.resize(*rc::gen::inRange<std::size_t>(0, 1473), 0x5A);
  const UdpDatagram d = mrp_datagram();
  Frame frame;
  frame.bytes.fill(0xA5);
  d.emit(frame, payload, 3);
  RC_ASSERT((frame.external == nullptr) == (payload.size() <= Frame::kCapacity - kBthOffset));
  const Packet bytes = bytes_of(frame);
  const auto received = Frame::from_bytes(bytes);
  RC_ASSERT(received.has_value());
  const auto parsed = UdpDatagram::parse(*received);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->ip.destination == d.ip.destination);
  RC_ASSERT(std::equal(payload.begin(), payload.end(), received->payload().begin(),
                       received->payload().end()));
}

TEST(UdpDatagram, RefusesAWrongChecksumAndAcceptsNone) {
  Frame frame;
  mrp_datagram().emit(frame, kPayload);
  ASSERT_TRUE(UdpDatagram::parse(frame));
  for (std::size_t bit = 0; bit < 8 * kPayload.size(); ++bit) {
    Frame damaged = frame;
    damaged.bytes[kBthOffset + bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(UdpDatagram::parse(damaged)) << bit;
  }
  store_be16(frame.bytes.data() + kUdpOffset + 6, 0);
  EXPECT_TRUE(UdpDatagram::parse(frame));
}

TEST(UdpDatagram, SendsAllOnesWhereItsChecksumIsZero) {
  Frame frame;
  UdpDatagram d = mrp_datagram();
  d.emit(frame, Packet{0, 0});
  // A payload word equal to the checksum of the rest makes the sum all ones, and its complement 0.
  const std::uint16_t rest = load_be16(frame.bytes.data() + kUdpOffset + 6);
  d.emit(frame, Packet{static_cast<std::uint8_t>(rest >> 8), static_cast<std::uint8_t>(rest)});
  EXPECT_EQ(load_be16(frame.bytes.data() + kUdpOffset + 6), 0xFFFF);
  EXPECT_TRUE(UdpDatagram::parse(frame));
}

TEST(UdpDatagram, RefusesRoceAndLengthsThatDoNotAddUp) {
  EXPECT_FALSE(UdpDatagram::parse(frame_of(write_with_imm(), kPayload)));
  Frame frame;
  mrp_datagram().emit(frame, kPayload);
  Frame shorter = frame;
  shorter.payload_len -= 1;
  EXPECT_FALSE(UdpDatagram::parse(shorter));
  Frame headless = frame;
  headless.header_len -= 1;
  EXPECT_FALSE(UdpDatagram::parse(headless));
}

TEST(Udp, RefusesEveryShortLengthAndALengthBelowItsOwn) {
  std::array<std::uint8_t, Udp::kSize> bytes{};
  store_be16(bytes.data() + 4, Udp::kSize);
  ASSERT_TRUE(Udp::parse(bytes));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(Udp::parse(std::span(bytes).first(n)));
  store_be16(bytes.data() + 4, Udp::kSize - 1);
  EXPECT_FALSE(Udp::parse(bytes));
}

RC_GTEST_PROP(Ethernet, RestoresAnyFourteenBytes, ()) {
  using Bytes14 = std::array<std::uint8_t, Ethernet::kSize>;
  const auto bytes = *rc::gen::container<Bytes14>(rc::gen::arbitrary<std::uint8_t>());
  const auto ethernet = Ethernet::parse(bytes);
  RC_ASSERT(ethernet.has_value());
  Bytes14 out;
  out.fill(0xA5);
  ethernet->emit(out);
  RC_ASSERT(out == bytes);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    RC_ASSERT(!Ethernet::parse(std::span(bytes).first(n)));
}

}  // namespace
}  // namespace cepheus::wire
