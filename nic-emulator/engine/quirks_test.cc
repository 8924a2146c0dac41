// NICs that answer differently from the emulated NIC (Quirks).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::AckKind;

// Host a sends four packets from PSN 100 on. Host b has the quirks.
struct Pair {
  explicit Pair(Quirks quirks) : hosts({.mtu = 256}, {.window_packets = 4, .quirks = quirks}) {
    hosts.a.send(1, 0, 256 * 4);
    p = hosts.a.transmit_all();
  }
  // Host b's answers, by kind and PSN.
  std::vector<std::pair<AckKind, std::uint32_t>> answers() {
    std::vector<std::pair<AckKind, std::uint32_t>> all;
    for (const Packet& packet : hosts.b.transmit_all()) {
      all.emplace_back(packet.headers().aeth.kind, packet.psn());
    }
    return all;
  }
  TwoHosts hosts;
  Host& b = hosts.b;
  std::vector<Packet> p;
};

TEST(Quirks, AcksEveryPacket) {
  Pair pair({.acks_every_packet = true});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p[0]);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 100u)));
}

TEST(Quirks, AcksDuplicatesWithAckReqOnly) {
  Pair pair({.acks_duplicates_if_requested = true});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p);
  pair.answers();
  pair.b.deliver(pair.p[0]);
  EXPECT_THAT(pair.answers(), IsEmpty());
  pair.b.deliver(pair.p[3]);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 103u)));
}

TEST(Quirks, NaksEachPacketBehindAGap) {
  Pair pair({.naks_each_packet_of_gap = true});
  pair.b.receive(1, 0, 1024);
  for (const int late : {1, 2, 3}) {
    pair.b.deliver(pair.p[late]);
    EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kNak, 100u)));
  }
}

TEST(Quirks, NaksOnceAfterAnRnrNak) {
  Pair pair({.naks_after_rnr = true});
  pair.b.deliver({pair.p[0], pair.p[1]});
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kRnrNak, 100u)));
  pair.b.deliver(pair.p[2]);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kNak, 100u)));
  pair.b.deliver(pair.p[3]);
  EXPECT_THAT(pair.answers(), IsEmpty());
}

TEST(Quirks, AcksADuplicateBeforeAnyRequestWithAStalePsn) {
  Pair pair({.acks_stale_psn = true});
  const auto late = with_headers(pair.p[0], [](auto& h) { h.bth.psn = wire::Psn(57); });
  pair.b.deliver(late);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 0xFFFFFFu)));
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p[0]);
  pair.b.deliver(late);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 100u)));
  ASSERT_TRUE(pair.b.to(QpState::kReset));
  ASSERT_TRUE(pair.b.to_init(pair.hosts.options));
  ASSERT_TRUE(pair.b.to_rtr(pair.hosts.options, pair.hosts.a, wire::Psn(4000)));
  pair.b.deliver(late);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 100u))) << "of before RESET";
}

TEST(Quirks, AcceptsAnAckOfAnUnsentPacket) {
  Pair pair({.accepts_ack_of_unsent = true});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p);
  const auto ack = with_headers(*pair.b.transmit(), [](auto& h) { h.bth.psn = wire::Psn(170); });
  Host& a = pair.hosts.a;
  a.deliver(with_headers(ack, [](auto& h) { h.bth.psn = wire::Psn(99); }));
  EXPECT_EQ(a.count(Counter::kRxDropStaleAck), 1u);
  a.deliver(ack);
  EXPECT_THAT(a.statuses(), ElementsAre(WcStatus::kSuccess));
  a.deliver(ack);
  EXPECT_EQ(a.count(Counter::kRxDropStaleAck), 2u) << "no packet is in flight";
}

}  // namespace
}  // namespace cepheus::rnic::testing
