// NICs that answer differently from the emulated NIC (Manners), and their makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/nic_profile.h"
#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using wire::AckKind;

// Host a sends four packets from PSN 100 on. Host b has the manners.
struct Pair {
  explicit Pair(Manners manners) : hosts({.mtu = 256}, {.window_packets = 4, .manners = manners}) {
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

TEST(Manners, AcksEveryPacket) {
  Pair pair({.acks_every_packet = true});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p[0]);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 100u)));
}

TEST(Manners, AcksDuplicatesWithAckReqOnly) {
  Pair pair({.acks_duplicates_if_requested = true});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p);
  pair.answers();
  pair.b.deliver(pair.p[0]);
  EXPECT_THAT(pair.answers(), IsEmpty());
  pair.b.deliver(pair.p[3]);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 103u)));
}

TEST(Manners, NaksEachPacketBehindAGap) {
  Pair pair({.naks_each_packet_of_gap = true});
  pair.b.receive(1, 0, 1024);
  for (const int late : {1, 2, 3}) {
    pair.b.deliver(pair.p[late]);
    EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kNak, 100u)));
  }
}

TEST(Manners, NaksOnceAfterAnRnrNak) {
  Pair pair({.naks_after_rnr = true});
  pair.b.deliver({pair.p[0], pair.p[1]});
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kRnrNak, 100u)));
  pair.b.deliver(pair.p[2]);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kNak, 100u)));
  pair.b.deliver(pair.p[3]);
  EXPECT_THAT(pair.answers(), IsEmpty());
}

TEST(Manners, AcksADuplicateBeforeAnyRequestWithAStalePsn) {
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

TEST(Manners, AcceptsAnAckOfAnUnsentPacket) {
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

TEST(Manners, SendsACnpForEachGap) {
  Pair pair({.sends_cnp_after_loss = true});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver({pair.p[1], pair.p[2]});
  const auto sent = pair.b.transmit_all();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].opcode(), wire::Opcode::kCnp);
  EXPECT_EQ(sent[1].headers().aeth.kind, AckKind::kNak);
  EXPECT_EQ(pair.b.count(Counter::kTxCnp), 1u);
  EXPECT_EQ(pair.b.nic.deadline(), wire::kNever);
}

TEST(Manners, SendsOneNakLate) {
  Pair pair({.naks_each_packet_of_gap = true, .longest_nak_wait = milliseconds(1)});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver({pair.p[1], pair.p[2]});
  EXPECT_THAT(pair.answers(), IsEmpty());
  const Instant leaves = pair.b.nic.deadline();
  EXPECT_GE(leaves, pair.hosts.now + microseconds(1));
  EXPECT_LE(leaves, pair.hosts.now + milliseconds(1));
  pair.hosts.now = leaves;
  pair.b.tick();
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kNak, 100u)));
}

TEST(Manners, DropsALateNakWhenTheGapIsFilled) {
  Pair pair({.longest_nak_wait = milliseconds(1)});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver({pair.p[1], pair.p[0]});
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 100u)));
  EXPECT_EQ(pair.b.nic.deadline(), wire::kNever);
}

TEST(Manners, KeepsPacketsBehindAGap) {
  Pair pair({.keeps_behind_gap = 3});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver({pair.p[3], pair.p[2], pair.p[1]});
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kNak, 100u)));
  pair.b.deliver(pair.p[0]);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 103u)));
  EXPECT_THAT(pair.b.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST(Manners, KeepsNoPacketWithoutAReceive) {
  Pair pair({.keeps_behind_gap = 4});
  pair.b.deliver({pair.p[1], pair.p[0]});
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kRnrNak, 100u)));
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p);
  EXPECT_THAT(pair.answers(), ElementsAre(std::pair(AckKind::kAck, 103u)));
}

TEST(Manners, CompletesByTheMsn) {
  Pair pair({.completes_by_msn = true});
  pair.b.receive(1, 0, 1024);
  pair.b.deliver(pair.p);
  const auto ack = *pair.b.transmit();
  Host& a = pair.hosts.a;
  a.deliver(with_headers(ack, [](auto& h) { h.aeth.msn = 0; }));
  EXPECT_THAT(a.statuses(), IsEmpty()) << "the MSN counts no message";
  a.deliver(ack);
  EXPECT_THAT(a.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST(Manners, VariesTheTimeout) {
  Pair pair({.varies_timeout = true});
  const Instant due = pair.hosts.a.nic.deadline();
  EXPECT_GT(due, pair.hosts.now + milliseconds(67)) << "code 14";
  EXPECT_LE(due, pair.hosts.now + 4 * milliseconds(68));
}

TEST(Manners, IgnoresTheTimeoutCode) {
  TwoHosts hosts({.timeout_code = 20},
                 {.manners = {.ignores_timeout_code = true}, .own_timeout_code = 14});
  hosts.a.send(1, 0, 16);
  hosts.a.transmit_all();
  EXPECT_EQ(hosts.a.nic.deadline(), hosts.now + std::chrono::nanoseconds(4096 << 14));
}

TEST(Manners, CountsSevenRnrRetries) {
  TwoHosts hosts({.rnr_retry = 7}, {.manners = {.limits_rnr_retries = true}});
  hosts.a.send(1, 0, 16);
  hosts.run_until_idle();
  EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kRnrRetryExceeded));
  EXPECT_EQ(hosts.a.count(Counter::kRxRnrNak), 8u);
}

TEST(Manners, DoesNotLeaveResetAgain) {
  TwoHosts hosts({}, {.manners = {.is_used_once = true}});
  ASSERT_TRUE(hosts.a.to(QpState::kReset));
  const auto refused = hosts.a.to_init(hosts.options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("again"));
}

TEST(Manners, ReturnsTheFirstPsns) {
  TwoHosts hosts({}, {.manners = {.psn_query_stands_still = true}});
  hosts.b.receive(1, 0, 16);
  hosts.a.send(1, 0, 16);
  hosts.exchange();
  EXPECT_EQ(hosts.a.nic.query_qp(hosts.a.qpn)->sq_psn, wire::Psn(100));
  EXPECT_EQ(hosts.b.nic.query_qp(hosts.b.qpn)->rq_psn, wire::Psn(100));
}

TEST(Makes, HaveNamesAndSources) {
  std::vector<std::string_view> names;
  for (const NicProfile& profile : nic_profiles()) {
    EXPECT_FALSE(profile.source.empty() || profile.manners.empty()) << profile.name;
    names.push_back(profile.name);
  }
  for (const char* name : {"ours", "rxe", "connectx", "irdma", "bnxt"}) {
    EXPECT_THAT(names, Contains(name));
  }
  EXPECT_EQ(*require_nic_profile(""), nic_profiles().data());
  const auto refused = require_nic_profile("mellanox");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text,
              StartsWith("no make of NIC is named 'mellanox': use one of ours rxe "));
}

}  // namespace
}  // namespace cepheus::rnic::testing
