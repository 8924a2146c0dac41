#include "wire/probe.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "wire/roce.h"
#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

Probe bare() {
  Probe probe;
  probe.header = {MrpType::kProbe, Probe::kFromSwitch, 0, 7, 1, McstId(198, 18, 0, 1), 9};
  probe.reply_port = 0x0102;
  probe.answer_bytes = 0x0304;
  probe.seen = {0x0506,
                7,
                8,
                0x090A,
                Mac{{11, 12, 13, 14, 15, 16}},
                0x1112,
                0x1B1C,
                0x131415161718191A,
                0x1D1E,
                0x1F,
                0x20,
                0x21222324};
  return probe;
}

RC_GTEST_PROP(Probe, SurvivesEmitAndParse,
              (std::uint16_t number, std::uint32_t time, bool orders)) {
  Probe probe = bare();
  probe.header.seq = number;
  probe.seen.time_us = time;
  if (orders) {
    probe.order = OrderRecord{
        OrderKind::kPacket, number, 3, time, OrderRecord::kUnknown, 4, 5, 6, 7, 8, 9, 10};
  }
  const auto parsed = Probe::parse(bytes_of(probe));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->header == probe.header && parsed->seen == probe.seen);
  RC_ASSERT(parsed->order == probe.order);
  RC_ASSERT(!MrpMessage::parse(bytes_of(probe)));  // its record must be known
}

TEST(Probe, HasTheLayoutOfItsDiagram) {
  Probe probe = bare();
  probe.order =
      OrderRecord{OrderKind::kAck, 0x2526,     0x2728,     0x292A2B2C, 0x2D2E2F30, 0x31323334,
                  0x35363738,      0x393A3B3C, 0x3D3E3F40, 0x41,       0x42,       0x4344};
  const std::vector<std::uint8_t> expected{
      3,    18,   0,    1,    0,    0,    0,    7,     // version, type, flags, epoch, seq
      0,    1,    0,    96,   198,  18,   0,    1,     // total, length, McstID
      0,    0,    0,    9,                             // instance
      6,    10,   1,    2,    3,    4,    5,    6,     // PROBE, reply port, answer, length
      7,    8,    9,    10,   11,   12,   13,   14,    // TOS, TTL, tag, source MAC
      15,   16,   0x11, 0x12, 0x13, 0x14, 0x15, 0x16,  // source port, time
      0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E,  // destination port, largest
      0x1F, 0x20, 0,    0,    0x21, 0x22, 0x23, 0x24,  // doubts, cores, lost
      7,    9,    3,    0,    0x25, 0x26, 0x27, 0x28,  // ORDER, kind, number, done
      0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x2F, 0x30,  // repeat, NAK
      0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,  // packets, repeats
      0x39, 0x3A, 0x3B, 0x3C, 0x3D, 0x3E, 0x3F, 0x40,  // NAKs, lost
      0x41, 0x42, 0x43, 0x44};                         // fill, TOS, RNR NAKs
  EXPECT_EQ(bytes_of(probe), expected);
  probe.order.reset();
  EXPECT_EQ(bytes_of(probe).size(), 60u);
}

TEST(Probe, MayHavePaddingAndNoOtherRecord) {
  auto bytes = bytes_of(bare());
  expect_refused_if_short<Probe>(bytes);
  bytes.resize(4132, 0xA5);
  EXPECT_TRUE(Probe::parse(bytes));
  bytes[11] = 96;
  EXPECT_FALSE(Probe::parse(bytes)) << "the padding is no ORDER";
  bytes[11] = 59;
  EXPECT_FALSE(Probe::parse(bytes));
}

TEST(Probe, RefusesUnknownKindsAndReservedBits) {
  Probe probe = bare();
  probe.order = OrderRecord{};
  const auto bytes = bytes_of(probe);
  ASSERT_TRUE(Probe::parse(bytes));
  EXPECT_FALSE(Probe::parse(with(bytes, 1, 17))) << "another type";
  EXPECT_FALSE(Probe::parse(with(bytes, 62, 5)));
  EXPECT_FALSE(Probe::parse(with(bytes, 63, 1)));
}

TEST(Probe, IsRecognisedInAFrame) {
  const auto payload = bytes_of(bare());
  UdpDatagram datagram;
  datagram.ip.destination = McstId(198, 18, 0, 1);
  datagram.udp.destination_port = kDefaultMrpUdpPort;
  Frame frame;
  datagram.emit(frame, payload);
  const auto bytes = bytes_of(frame);
  EXPECT_TRUE(looks_like_probe(bytes));
  EXPECT_FALSE(looks_like_probe(with(bytes, kBthOffset + 1, 1)));
  EXPECT_FALSE(looks_like_probe(with(bytes, kIpOffset + 9, 6))) << "not UDP, and a wrong checksum";
  for (std::size_t n = 0; n < kBthOffset + MrpHeader::kSize; ++n) {
    EXPECT_FALSE(looks_like_probe(std::span(bytes).first(n)));
  }
}

}  // namespace
}  // namespace cepheus::wire
