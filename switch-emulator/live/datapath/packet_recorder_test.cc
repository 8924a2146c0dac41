#include "switch-emulator/live/datapath/packet_recorder.h"

#include <gtest/gtest.h>

#include "wire/roce.h"

namespace cepheus::live {
namespace {

using recording::Event;
using recording::PacketKind;
using recording::Sighting;

constexpr PacketRecorder::Place kHostPort{0, wire::PortId(1), true};

wire::Frame frame_of(wire::Opcode opcode, std::uint32_t psn, std::uint8_t syndrome = 0) {
  wire::RoceHeaders headers;
  headers.ip.source = wire::Ipv4(10, 0, 0, 1);
  headers.ip.destination = wire::Ipv4(198, 18, 0, 1);
  headers.bth.opcode = opcode;
  headers.bth.destination_qp = wire::kVirtualQpn;
  headers.bth.psn = wire::Psn(psn);
  headers.aeth = {};
  wire::Frame frame;
  headers.emit(frame, 0);
  if (opcode == wire::Opcode::kRcAcknowledge) frame.bytes[wire::kExtensionOffset] = syndrome;
  return frame;
}
wire::Frame data(std::uint32_t psn) { return frame_of(wire::Opcode::kRcSendOnly, psn); }

class Recorder : public testing::Test {
 protected:
  void arrives(const wire::Frame& frame) {
    recorder.arrives(now, kHostPort, frame);
    recorder.handled();
  }
  std::vector<Sighting> taken() { return recorder.take(PacketRecorder::kMost); }

  wire::Instant now{std::chrono::hours(1)};
  PacketRecorder recorder{1, now + std::chrono::seconds(2), 4};
};

TEST_F(Recorder, KeepsTheFirstPacketsOfAWindowWithTheirConsequences) {
  for (std::uint32_t psn = 0; psn < 10; ++psn) {
    recorder.arrives(now, kHostPort, data(psn));
    recorder.leaves({0, wire::PortId(2)}, data(psn));
    recorder.leaves({0, wire::PortId(3)}, data(psn));
    recorder.handled();
  }
  const auto seen = taken();
  ASSERT_EQ(seen.size(), 4u * 3);
  EXPECT_EQ(seen[1].event, Event::kLeaves);
  EXPECT_TRUE(seen[1].is_caused);
  EXPECT_EQ(recorder.passed_over(), 6u * 3);
  now += PacketRecorder::kWindow;
  arrives(data(10));
  EXPECT_EQ(taken().size(), 1u);
}

TEST_F(Recorder, KeepsRarePacketsWhateverTheWindowHolds) {
  for (std::uint32_t psn = 0; psn < 10; ++psn) arrives(data(psn));
  (void)taken();
  arrives(frame_of(wire::Opcode::kRcAcknowledge, 3, 0x60));  // NAK
  arrives(frame_of(wire::Opcode::kRcAcknowledge, 3, 0x20));  // RNR NAK
  arrives(frame_of(wire::Opcode::kRcAcknowledge, 3));        // ACK
  arrives(data(3));                                          // again
  const auto seen = taken();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].kind, PacketKind::kNak);
  EXPECT_EQ(seen[1].kind, PacketKind::kRnrNak);
  EXPECT_EQ(seen[2].kind, PacketKind::kData);
  EXPECT_TRUE(seen[2].is_repeat);
}

TEST_F(Recorder, TakesPsnsRoundTheCircleForNew) {
  arrives(data(0xFFFFFF));
  arrives(data(0));
  for (const Sighting& seen : taken()) EXPECT_FALSE(seen.is_repeat);
}

TEST_F(Recorder, CountsPacketsThatDoNotFitIntoTheRing) {
  PacketRecorder busy(1, now, 1'000'000);
  for (std::uint32_t n = 0; n < PacketRecorder::kMost + 5; ++n) {
    busy.arrives(now, kHostPort, data(n));
    busy.handled();
  }
  EXPECT_EQ(busy.lost(), 5u);
  EXPECT_EQ(busy.take(10).size(), 10u);
  EXPECT_EQ(busy.take(PacketRecorder::kMost).size(), PacketRecorder::kMost - 10);
}

TEST_F(Recorder, RecordsCountersThatGrewMeanwhile) {
  fabric::Counters counters(4);
  counters.add(wire::PortId(0), fabric::Counter::kPathsEvicted, 7);
  recorder.begin(0, counters);
  counters.add(wire::PortId(0), fabric::Counter::kTurns);
  recorder.arrives(now, kHostPort, data(5));
  recorder.counted(kHostPort, counters);
  const auto seen = taken();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].event, Event::kCounts);
  EXPECT_EQ(fabric::incident_names()[seen[1].number], "turns");
  EXPECT_EQ(seen[1].destination, wire::Ipv4(198, 18, 0, 1).value());
}

TEST_F(Recorder, IsOverUnlessItIsExtended) {
  now += std::chrono::seconds(3);
  EXPECT_TRUE(recorder.is_over(now));
  EXPECT_TRUE(recorder.extend(now + std::chrono::seconds(1)));
  EXPECT_FALSE(recorder.end_if_over(now));
  now += std::chrono::seconds(2);
  EXPECT_TRUE(recorder.end_if_over(now));
}

// Otherwise its owner would get answers, but no packets.
TEST_F(Recorder, IsNotExtendedOnceTheDatapathHasDroppedIt) {
  now += std::chrono::seconds(3);
  ASSERT_TRUE(recorder.end_if_over(now));
  EXPECT_FALSE(recorder.extend(now + std::chrono::seconds(1)));
  EXPECT_TRUE(recorder.is_over(now));
}

}  // namespace
}  // namespace cepheus::live
