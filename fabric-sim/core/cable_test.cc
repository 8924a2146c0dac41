#include "fabric-sim/core/cable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

class Sink : public FrameSink {
 public:
  explicit Sink(BufferPool& pool) : pool_(pool) {}
  void receive(Instant now, wire::PortId, const wire::Frame& frame) override {
    times.push_back(now);
    icrc_right.push_back(wire::check_icrc(frame));
    datagrams += wire::UdpDatagram::parse(frame) ? 1 : 0;
    payload.assign(frame.payload().begin(), frame.payload().end());
    const auto headers = wire::RoceHeaders::parse(frame);
    opcodes.push_back(headers ? headers->bth.opcode : wire::Opcode::kRcSendOnly);
    marked.push_back(headers && wire::ecn_of(headers->ip.tos) == wire::Ecn::kExperienced);
    pool_.release(frame.ref);
  }
  std::vector<Instant> times;
  std::vector<bool> icrc_right;
  int datagrams = 0;
  std::vector<wire::Opcode> opcodes;
  std::vector<bool> marked;
  std::vector<std::uint8_t> payload;

 private:
  BufferPool& pool_;
};

class CableTest : public testing::Test {
 protected:
  Cable make(const net::LinkConfig& link) {
    return Cable(simulator_, pool_, "a>b", link, sink_, wire::PortId(0));
  }
  // A data packet with its payload in the pool, with one reference.
  wire::Frame packet(wire::Ecn ecn = wire::Ecn::kNotCapable) {
    const wire::BufferRef buffer = pool_.acquire();
    const auto payload = pool_.bytes(buffer).first(256);
    std::iota(payload.begin(), payload.end(), std::uint8_t{0});
    wire::RoceHeaders headers;
    headers.bth.opcode = wire::Opcode::kRcSendOnly;
    headers.ip.tos = static_cast<std::uint8_t>(ecn);
    headers.ip.source = wire::Ipv4(10, 0, 0, 1);
    headers.ip.destination = wire::Ipv4(10, 0, 0, 2);
    wire::Frame frame;
    headers.emit(frame, payload.size());
    frame.set_external_payload(payload, buffer);
    return frame;
  }

  std::size_t packet_bytes() {
    const wire::Frame frame = packet();
    pool_.release(frame.ref);
    return frame.size();
  }

  Simulator simulator_{10'000};
  BufferPool pool_{1024};
  Sink sink_{pool_};
};

TEST_F(CableTest, DeliversAfterTheLinksDelayAndGivesTheBufferBack) {
  net::LinkConfig link;
  link.delay = 7us;
  Cable cable = make(link);
  cable.send(simulator_.now(), packet());
  EXPECT_EQ(cable.in_flight(), 1u);
  simulator_.run();
  ASSERT_EQ(sink_.times.size(), 1u);
  EXPECT_EQ(sink_.times[0], Instant{7us});
  EXPECT_TRUE(cable.is_balanced());
  EXPECT_EQ(pool_.in_use(), 0u);
}

// Long turns jump while no packet of a queue pair is under way.
TEST_F(CableTest, DistinguishesPacketsOfQueuePairsFromOtherFrames) {
  net::LinkConfig link;
  link.reorder = 1;  // each frame is delayed outside the ring
  Cable cable = make(link);
  wire::Frame other = packet();
  other.icrc_state = wire::Icrc::kNone;
  cable.send(simulator_.now(), other);
  EXPECT_FALSE(cable.carries_roce());
  cable.send(simulator_.now(), packet());
  EXPECT_TRUE(cable.carries_roce());
  simulator_.run();
  EXPECT_FALSE(cable.carries_roce()) << "arrived frames are no longer under way";
}

TEST_F(CableTest, DamageFailsTheIcrcAndLeavesTheOriginalAlone) {
  net::LinkConfig link;
  link.corrupt = 1;
  Cable cable = make(link);
  const wire::Frame original = packet();
  for (int i = 0; i < 200; ++i) {
    pool_.hold(original.ref);
    cable.send(simulator_.now(), original);
  }
  simulator_.run();
  // Few bits are outside the ICRC (Ethernet addresses, TTL, ...), so most damage must show.
  const auto unseen = std::count(sink_.icrc_right.begin(), sink_.icrc_right.end(), true);
  EXPECT_LT(unseen, 20);
  EXPECT_GT(sink_.icrc_right.size(), 150u);
  EXPECT_EQ(cable.delivered() + cable.dropped_unreadable(), 200u);
  EXPECT_TRUE(cable.is_balanced());
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(original.payload()[i], i);
  pool_.release(original.ref);
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, DamageIsNeverUndoneByMoreOfIt) {
  net::LinkConfig link;
  link.corrupt = 1;
  Cable cable = make(link);
  wire::Frame damaged = packet();
  wire::seal_icrc(damaged);
  damaged.bytes[wire::kUdpOffset + 2] ^= 1;  // another port: switches no longer treat it as RoCE
  constexpr int kTimes = 9'000;              // of some 2500 bits
  for (int i = 0; i < kTimes; ++i) {
    pool_.hold(damaged.ref);
    cable.send(simulator_.now(), damaged);
    if (i % 100 == 0) simulator_.run();
  }
  simulator_.run();
  EXPECT_EQ(std::ranges::count(sink_.icrc_right, true), 0);
  EXPECT_GT(cable.delivered(), kTimes / 2u);
  pool_.release(damaged.ref);
}

// Two flips 16 bits apart cancel in UDP's checksum.
TEST_F(CableTest, DamageIsNeverHiddenByMoreOfIt) {
  net::LinkConfig link;
  link.corrupt = 1;
  Cable cable = make(link);
  const wire::BufferRef buffer = pool_.acquire();
  const auto payload = pool_.bytes(buffer).first(256);
  std::iota(payload.begin(), payload.end(), std::uint8_t{0});
  wire::UdpDatagram datagram;
  datagram.ip.source = wire::Ipv4(10, 0, 0, 1);
  datagram.ip.destination = wire::Ipv4(10, 0, 0, 2);
  datagram.udp.destination_port = 18516;
  wire::Frame damaged;
  datagram.emit(damaged, payload);
  ASSERT_TRUE(wire::UdpDatagram::parse(damaged));
  damaged.ref = buffer;
  payload[8] ^= 4;
  ASSERT_FALSE(wire::UdpDatagram::parse(damaged));
  for (int i = 0; i < 9000; ++i) {  // of some 2400 bits
    pool_.hold(buffer);
    cable.send(simulator_.now(), damaged);
    if (i % 100 == 0) simulator_.run();
  }
  simulator_.run();
  EXPECT_EQ(sink_.datagrams, 0);
  EXPECT_GT(cable.delivered(), 1000u);
  pool_.release(buffer);
}

wire::Frame notification() {
  wire::RoceHeaders headers;
  headers.bth.opcode = wire::Opcode::kCnp;
  wire::Frame frame;
  headers.emit(frame, 16);
  frame.set_inline_payload(std::array<std::uint8_t, 16>{});
  return frame;
}

// 8 ns a byte, and marks from one waiting packet of 314 bytes on.
net::LinkConfig slow_marking_link() {
  net::LinkConfig link;
  link.rate = wire::BitRate{1'000'000'000};
  link.ecn = {.on = true, .kmin = 313, .kmax = 314};
  return link;
}

TEST_F(CableTest, QueueSendsAtTheLinksRateAndNotificationsFirst) {
  Cable cable = make(slow_marking_link());
  cable.add_queue(nullptr);
  for (int i = 0; i < 3; ++i) cable.send(simulator_.now(), packet());
  cable.send(simulator_.now(), notification());
  EXPECT_EQ(cable.waiting(), 3u);
  EXPECT_EQ(cable.in_flight(), 4u);
  simulator_.run();
  using enum wire::Opcode;
  EXPECT_EQ(sink_.opcodes, (std::vector{kRcSendOnly, kCnp, kRcSendOnly, kRcSendOnly}));
  const auto data = static_cast<std::int64_t>(packet_bytes()) * 8ns;
  const auto cnp = static_cast<std::int64_t>(notification().size()) * 8ns;
  const Instant start{};
  EXPECT_EQ(sink_.times, (std::vector{start + data, start + data + cnp, start + 2 * data + cnp,
                                      start + 3 * data + cnp}));
  EXPECT_EQ(cable.queue_counters().high_water, 2 * packet_bytes() + notification().size());
}

TEST_F(CableTest, QueueTakesNoMoreThanItsLimitAndCountsTheRest) {
  net::LinkConfig link = slow_marking_link();
  link.queue_bytes = 2 * packet_bytes();
  Cable cable = make(link);
  cable.add_queue(nullptr);
  for (int i = 0; i < 5; ++i) cable.send(simulator_.now(), packet());
  simulator_.run();
  EXPECT_EQ(sink_.times.size(), 3u) << "one on its way, two waiting";
  EXPECT_EQ(cable.link_counters().dropped_queue_full, 2u);
  EXPECT_TRUE(cable.is_balanced());
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, AFullQueueTakesAFrameThatHasSpaceOfItsOwn) {
  net::LinkConfig link = slow_marking_link();
  link.queue_bytes = packet_bytes();
  Cable cable = make(link);
  cable.add_queue(nullptr);
  for (int i = 0; i < 2; ++i) cable.send(simulator_.now(), packet());
  EXPECT_FALSE(cable.send(simulator_.now(), packet()));
  EXPECT_TRUE(cable.send(simulator_.now(), packet(), net::IngressBooks::kNone, true));
  simulator_.run();
  EXPECT_EQ(sink_.times.size(), 3u);
  EXPECT_EQ(cable.link_counters().dropped_queue_full, 1u);
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, FramesThatWaitForACutCableAreDroppedAndCounted) {
  Cable cable = make(slow_marking_link());
  cable.add_queue(nullptr);
  for (int i = 0; i < 4; ++i) cable.send(simulator_.now(), packet());
  cable.set_up(false);
  simulator_.run();
  EXPECT_EQ(sink_.times.size(), 1u) << "frames on their way arrive";
  EXPECT_EQ(cable.link_counters().dropped_down, 3u);
  EXPECT_EQ(cable.in_flight(), 0u);
  EXPECT_TRUE(cable.is_balanced());
  EXPECT_EQ(pool_.in_use(), 0u);
}

TEST_F(CableTest, CopiesAPayloadOutsideThePool) {
  Cable cable = make({});
  std::vector<std::uint8_t> own(256, 7);
  wire::Frame frame = packet();
  pool_.release(frame.ref);
  frame.set_external_payload(own, wire::kNoBuffer);
  cable.send(simulator_.now(), frame);
  std::fill(own.begin(), own.end(), std::uint8_t{0});
  simulator_.run();
  EXPECT_EQ(sink_.payload, std::vector<std::uint8_t>(256, 7));
  EXPECT_EQ(pool_.in_use(), 0u);
}

}  // namespace
}  // namespace cepheus::sim
