// The state machine of a queue pair (IBTA vol. 1, 10.3), and work in each state.
#include "nic-emulator/engine/queue_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "nic-emulator/engine/nic_testing.h"
#include "wire/sender_group.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::ErrorCode;

TEST(QueuePair, WalksFromResetToRtsWithTheRequiredAttributesOnly) {
  TwoHosts hosts;
  Host& a = hosts.a;
  a.create(hosts.options);
  EXPECT_EQ(a.state(), QpState::kReset);
  const auto early = a.to_rts(hosts.options, Psn(1));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(early.error().text, HasSubstr("from reset to rts"));
  EXPECT_THAT(a.to(QpState::kInit).error().text, HasSubstr("access flags"));
  ASSERT_TRUE(a.to_init(hosts.options));
  EXPECT_THAT(a.to(QpState::kRtr).error().text,
              AllOf(HasSubstr("path mtu"), HasSubstr("rq psn"), HasSubstr("address")));
  ASSERT_TRUE(a.to_rtr(hosts.options, hosts.b, Psn(77)));
  EXPECT_THAT(a.to(QpState::kRts).error().text, HasSubstr("sq psn"));
  ASSERT_TRUE(a.to_rts(hosts.options, Psn(88)));
  const auto attr = *a.nic.query_qp(a.qpn);
  EXPECT_EQ(attr.state, QpState::kRts);
  EXPECT_EQ(attr.rq_psn, Psn(77));
  EXPECT_EQ(attr.sq_psn, Psn(88));
  EXPECT_EQ(attr.remote_qpn, hosts.b.qpn);
  EXPECT_EQ(attr.cap.max_send_wr, 64u);
}

TEST(QueuePair, BeginsWithTheseAttributes) {
  Nic nic({});
  const QpAttr attr = *nic.query_qp(*nic.create_qp({}));
  EXPECT_EQ(attr.state, QpState::kReset);
  EXPECT_EQ(attr.current_state, QpState::kReset);
  EXPECT_EQ(attr.path_mtu, 1024u);
  EXPECT_EQ(attr.remote_qpn, Qpn());
  EXPECT_EQ(attr.rq_psn, Psn());
  EXPECT_EQ(attr.sq_psn, Psn());
  EXPECT_TRUE(attr.remote_ip.is_unset());
  EXPECT_EQ(attr.traffic_class, 0);
  EXPECT_EQ(attr.hop_limit, 64);
  EXPECT_EQ(attr.access, 0u);
  EXPECT_EQ(attr.timeout_code, 14);
  EXPECT_EQ(attr.retry_count, 7);
  EXPECT_EQ(attr.rnr_retry, 7);
  EXPECT_EQ(attr.min_rnr_timer, 12);
  EXPECT_EQ(attr.max_rd_atomic, 0);
  EXPECT_EQ(attr.max_dest_rd_atomic, 0);
  EXPECT_EQ(attr.qkey, 0u);
  EXPECT_FALSE(attr.drained_event);
}

// A program that asks for 106, as UCX does, is not capable of congestion control by that.
TEST(QueuePair, SendsTheDscpOfItsTrafficClassWithoutEcn) {
  TwoHosts hosts({.mtu = 256, .traffic_class = 106});
  hosts.b.receive(1, 0, 64);
  hosts.a.send(1, 0, 64);
  const Packet data = *hosts.a.transmit();
  EXPECT_EQ(data.headers().ip.tos, 104);
  hosts.b.deliver(data);
  EXPECT_EQ(hosts.b.transmit()->headers().ip.tos, 104);
}

TEST(QueuePair, KeepsAttributesThatATransitionDoesNotName) {
  QpOptions options{.mtu = 512, .timeout_code = 11, .retry_count = 3, .rnr_retry = 2};
  options.min_rnr_timer = 9;
  TwoHosts hosts(options);
  Host& a = hosts.a;
  ASSERT_TRUE(a.to(QpState::kSqd));
  ASSERT_TRUE(a.to(QpState::kRts));
  const QpAttr attr = *a.nic.query_qp(a.qpn);
  EXPECT_EQ(attr.path_mtu, 512u);
  EXPECT_EQ(attr.remote_qpn, hosts.b.qpn);
  EXPECT_EQ(attr.remote_ip, hosts.b.nic.config().address);
  EXPECT_EQ(attr.access, kAllAccess);
  EXPECT_EQ(attr.timeout_code, 11);
  EXPECT_EQ(attr.retry_count, 3);
  EXPECT_EQ(attr.rnr_retry, 2);
  EXPECT_EQ(attr.min_rnr_timer, 9);
  EXPECT_EQ(attr.max_rd_atomic, 4);
  EXPECT_EQ(attr.max_dest_rd_atomic, 4);
}

TEST(QueuePair, RefusesPsnsInRts) {
  TwoHosts hosts;
  QpAttr attr;
  attr.sq_psn = Psn(5);
  EXPECT_THAT(hosts.a.modify(attr, kAttrSqPsn).error().text, HasSubstr("do not set sq psn"));
  EXPECT_THAT(hosts.a.modify(attr, kAttrRqPsn).error().text, HasSubstr("do not set rq psn"));
}

TEST(QueuePair, RefusesAWrongCurrentState) {
  TwoHosts hosts;
  QpAttr attr;
  attr.state = QpState::kRts;
  attr.current_state = QpState::kRtr;
  attr.sq_psn = Psn(5);
  const auto refused = hosts.a.modify(attr, kAttrState | kAttrCurrentState | kAttrSqPsn);
  EXPECT_THAT(refused.error().text, HasSubstr("current state is rts"));
  attr.current_state = QpState::kRts;
  EXPECT_TRUE(hosts.a.modify(attr, kAttrState | kAttrCurrentState));
}

TEST(QueuePair, RefusesValuesOutOfRangeAndStaysAsItWas) {
  TwoHosts hosts({}, {.max_mtu = 2048});
  Host& a = hosts.a;
  a.create(hosts.options);
  ASSERT_TRUE(a.to_init(hosts.options));
  for (const std::uint32_t mtu : {0u, 255u, 1000u, 4096u, 8192u}) {
    QpOptions bad = hosts.options;
    bad.mtu = mtu;
    EXPECT_FALSE(a.to_rtr(bad, hosts.b, Psn(1))) << mtu;
  }
  QpOptions bad = hosts.options;
  bad.min_rnr_timer = 32;
  EXPECT_FALSE(a.to_rtr(bad, hosts.b, Psn(1)));
  EXPECT_EQ(a.state(), QpState::kInit);
  ASSERT_TRUE(a.to_rtr(hosts.options, hosts.b, Psn(1)));
  bad = hosts.options;
  bad.retry_count = 8;
  EXPECT_FALSE(a.to_rts(bad, Psn(1)));
  bad = hosts.options;
  bad.rnr_retry = 8;
  EXPECT_FALSE(a.to_rts(bad, Psn(1)));
  bad = hosts.options;
  bad.timeout_code = 32;
  EXPECT_FALSE(a.to_rts(bad, Psn(1)));
  EXPECT_EQ(a.state(), QpState::kRtr);
}

TEST(QueuePair, TakesTheLargestValues) {
  TwoHosts hosts({}, {.max_mtu = 4096});
  Host& a = hosts.a;
  a.create(hosts.options);
  QpOptions largest = hosts.options;
  largest.mtu = 4096;
  largest.min_rnr_timer = largest.timeout_code = 31;
  largest.retry_count = largest.rnr_retry = 7;
  largest.max_rd_atomic = kMaxRdAtomic;
  QpOptions beyond = largest;
  ++beyond.max_rd_atomic;
  ASSERT_TRUE(a.to_init(largest));
  EXPECT_FALSE(a.to_rtr(beyond, hosts.b, Psn(1)));
  ASSERT_TRUE(a.to_rtr(largest, hosts.b, Psn(1)));
  EXPECT_FALSE(a.to_rts(beyond, Psn(1)));
  ASSERT_TRUE(a.to_rts(largest, Psn(1)));
}

TEST(QueuePair, TakesWorkOnlyWhereTheStateAllowsIt) {
  TwoHosts hosts;
  Host& a = hosts.a;
  a.create(hosts.options);
  const auto posts = [&] {
    return std::pair(a.post(SendWr{}).has_value(), a.post(RecvWr{}).has_value());
  };
  EXPECT_EQ(posts(), std::pair(false, false)) << "reset";
  ASSERT_TRUE(a.to_init(hosts.options));
  EXPECT_EQ(posts(), std::pair(false, true)) << "init";
  ASSERT_TRUE(a.to_rtr(hosts.options, hosts.b, Psn(1)));
  EXPECT_EQ(posts(), std::pair(false, true)) << "rtr";
  ASSERT_TRUE(a.to_rts(hosts.options, Psn(1)));
  EXPECT_EQ(posts(), std::pair(true, true)) << "rts";
  ASSERT_TRUE(a.to(QpState::kErr));
  a.completions.clear();
  EXPECT_EQ(posts(), std::pair(true, true)) << "err";
  EXPECT_THAT(a.statuses(), ElementsAre(WcStatus::kFlush, WcStatus::kFlush));
}

TEST(QueuePair, FlushesInOrderWhenModifiedToErr) {
  TwoHosts hosts;
  for (std::uint64_t id : {1, 2, 3}) hosts.a.send(id, 0, 5000);
  for (std::uint64_t id : {4, 5}) hosts.a.receive(id, 0, 10);
  hosts.a.transmit();
  ASSERT_TRUE(hosts.a.to(QpState::kErr));
  EXPECT_THAT(hosts.a.ids(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(hosts.a.statuses(), ::testing::Each(WcStatus::kFlush));
  EXPECT_FALSE(hosts.a.nic.wants_to_transmit());
  EXPECT_EQ(hosts.a.nic.deadline(), wire::kNever);
  ASSERT_TRUE(hosts.a.to(QpState::kErr)) << "again is harmless";
  EXPECT_EQ(hosts.a.completions.size(), 5u);
}

TEST(QueuePair, FailsAfterAnExternalErrorOnce) {
  TwoHosts hosts;
  Nic& nic = hosts.a.nic;
  hosts.a.send(1, 0, 100);
  NicOutput out;
  EXPECT_TRUE(nic.fail_qp(hosts.a.qpn, out));
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].kind, AsyncEventKind::kQpFatal);
  EXPECT_EQ(out.events[0].qpn, hosts.a.qpn);
  ASSERT_EQ(out.completions.size(), 1u);
  EXPECT_EQ(out.completions[0].status, WcStatus::kFlush);
  EXPECT_EQ(hosts.a.state(), QpState::kErr);
  out.clear();
  EXPECT_TRUE(nic.fail_qp(hosts.a.qpn, out));
  EXPECT_TRUE(nic.fail_qp(*nic.create_qp({}), out)) << "in reset";
  EXPECT_TRUE(out.events.empty());
  EXPECT_FALSE(nic.fail_qp(Qpn(2), out));
}

TEST(QueuePair, ResetForgetsWorkWithoutCompletionsAndStartsAfresh) {
  TwoHosts hosts;
  hosts.b.receive(1, 0, 10);
  hosts.a.send(1, 0, 5000);
  hosts.a.transmit_all();
  for (Host* host : {&hosts.a, &hosts.b}) ASSERT_TRUE(host->to(QpState::kReset));
  EXPECT_THAT(hosts.a.completions, IsEmpty());
  EXPECT_THAT(hosts.b.completions, IsEmpty());
  EXPECT_FALSE(hosts.a.nic.wants_to_transmit());
  EXPECT_EQ(hosts.a.nic.deadline(), wire::kNever);

  // The PSNs cross over, as host PSN synchronisation of a group does.
  ASSERT_TRUE(hosts.a.to_init(hosts.options));
  ASSERT_TRUE(hosts.a.to_rtr(hosts.options, hosts.b, Psn(9)));
  ASSERT_TRUE(hosts.a.to_rts(hosts.options, Psn(2000)));
  ASSERT_TRUE(hosts.b.to_init(hosts.options));
  ASSERT_TRUE(hosts.b.to_rtr(hosts.options, hosts.a, Psn(2000)));
  hosts.b.receive(2, 0, 5000);
  hosts.a.send(2, 0, 5000);
  hosts.exchange();
  EXPECT_THAT(hosts.b.ids(), ElementsAre(2));
  EXPECT_THAT(hosts.a.ids(), ElementsAre(2));
}

TEST(QueuePair, ReportsEstablishedCommunicationInRtr) {
  TwoHosts hosts;
  ASSERT_TRUE(hosts.b.to(QpState::kReset));
  ASSERT_TRUE(hosts.b.to_init(hosts.options));
  ASSERT_TRUE(hosts.b.to_rtr(hosts.options, hosts.a, Psn(100)));
  hosts.b.receive(1, 0, 5000);
  hosts.a.send(1, 0, 5000);
  hosts.exchange();
  ASSERT_EQ(hosts.b.events.size(), 1u);
  EXPECT_EQ(hosts.b.events[0].kind, AsyncEventKind::kCommEstablished);
  EXPECT_EQ(hosts.b.events[0].qpn, hosts.b.qpn);
  EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kSuccess)) << "RTR answers";
}

TEST(QueuePair, DrainsWhatHasBegunAndHoldsTheRest) {
  TwoHosts hosts({.mtu = 256});
  for (std::uint64_t id : {1, 2, 3}) {
    hosts.b.receive(id, 0, 512);
    hosts.a.send(id, 0, 512);
  }
  for (int i = 0; i < 3; ++i) hosts.b.deliver(*hosts.a.transmit());
  ASSERT_TRUE(hosts.a.to_drained());
  EXPECT_THAT(hosts.a.events, IsEmpty());
  EXPECT_TRUE(hosts.a.nic.query_qp(hosts.a.qpn)->is_draining);
  hosts.exchange();
  EXPECT_THAT(hosts.a.ids(), ElementsAre(1, 2)) << "the second had begun";
  EXPECT_FALSE(hosts.a.nic.query_qp(hosts.a.qpn)->is_draining);
  ASSERT_EQ(hosts.a.events.size(), 1u);
  EXPECT_EQ(hosts.a.events[0].kind, AsyncEventKind::kSqDrained);
  hosts.b.receive(4, 0, 512);
  hosts.a.send(4, 0, 512);
  hosts.exchange();
  EXPECT_THAT(hosts.a.ids(), ElementsAre(1, 2));
  ASSERT_TRUE(hosts.a.to(QpState::kRts));
  hosts.exchange();
  EXPECT_THAT(hosts.a.ids(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(hosts.a.events.size(), 1u);
}

TEST(QueuePair, IdleQueueIsDrainedAtOnce) {
  TwoHosts hosts;
  ASSERT_TRUE(hosts.a.to_drained());
  EXPECT_EQ(hosts.a.events.size(), 1u);
  ASSERT_TRUE(hosts.a.to(QpState::kSqd));
  EXPECT_EQ(hosts.a.events.size(), 1u);
}

TEST(QueuePair, TakesLimitsOfReadsAndAtomicsWhileItsSendQueueIsDrained) {
  TwoHosts hosts;
  ASSERT_TRUE(hosts.a.to_drained());
  QpAttr limits;
  limits.max_rd_atomic = 2;
  limits.max_dest_rd_atomic = 3;
  ASSERT_TRUE(hosts.a.modify(limits, kAttrMaxRdAtomic | kAttrMaxDestRdAtomic));
  EXPECT_EQ(hosts.a.nic.query_qp(hosts.a.qpn)->max_dest_rd_atomic, 3u);
}

TEST(QueuePair, PostsAllRequestsOfAListOrNone) {
  for (const QpType type : {QpType::kRc, QpType::kUc}) {
    TwoHosts hosts({.type = type, .mtu = 256, .cap = {.max_send_wr = 4, .max_recv_wr = 4}});
    const Sge sge = hosts.a.piece(0, 600);
    const std::array twice{sge, sge};
    const SendWr good{.wr_id = 1, .signaled = true, .sges = {&sge, 1}};
    const SendWr bad{.wr_id = 2, .sges = twice};  // more pieces than the queue's one
    NicOutput out;
    const auto post = [&](std::vector<SendWr> wrs) {
      return hosts.a.nic.post_sends(hosts.now, hosts.a.qpn, wrs, out).has_value();
    };
    EXPECT_FALSE(post({good, good, bad}));
    EXPECT_FALSE(post({good, good, good, good, good})) << "one more than the queue holds";
    hosts.a.nic.check_consistent();
    EXPECT_FALSE(hosts.a.transmit());
    EXPECT_THAT(out.completions, IsEmpty());
    for (std::uint64_t id = 1; id <= 4; ++id) hosts.b.receive(id, 0, 600);
    EXPECT_TRUE(post({good, good, good, good}));
    hosts.exchange();
    EXPECT_EQ(hosts.a.completions.size(), 4u);
    EXPECT_THAT(hosts.b.ids(), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(hosts.b.nic.query_qp(hosts.b.qpn)->rq_psn, Psn(100 + 12));
  }
}

TEST(QueuePair, SendsItsFatalNakInErr) {
  TwoHosts hosts;
  hosts.a.write(1, 0, 10, hosts.b, Host::kMemory - 1);
  hosts.exchange();
  EXPECT_EQ(hosts.b.state(), QpState::kErr);
  EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kRemoteAccess));
}

TEST(QueuePair, NumbersDifferBetweenHostsAndAreNotUsedAgainSoon) {
  TwoHosts hosts;
  EXPECT_NE(hosts.a.qpn, hosts.b.qpn);
  std::set<Qpn> seen{hosts.a.qpn};
  for (int i = 0; i < 10000; ++i) {
    hosts.a.create(hosts.options);
    EXPECT_GT(hosts.a.qpn, wire::kVirtualQpn);
    EXPECT_FALSE(wire::is_sender_group(hosts.a.qpn)) << "round " << i;
    EXPECT_TRUE(seen.insert(hosts.a.qpn).second) << "round " << i;
    ASSERT_TRUE(hosts.a.nic.destroy_qp(hosts.a.qpn));
    EXPECT_FALSE(hosts.a.nic.destroy_qp(hosts.a.qpn));
    EXPECT_FALSE(hosts.a.nic.query_qp(hosts.a.qpn));
  }
}

// The table of a program that makes queue pairs one after the other stays small.
TEST(QueuePair, NumbersTakeTurnsAmongSixtyFourSlots) {
  constexpr std::uint32_t kSlots = 4096;
  Nic nic({.max_qps = kSlots});
  std::set<std::uint32_t> slots;
  for (int i = 0; i < 200; ++i) {
    const Qpn qpn = *nic.create_qp({});
    slots.insert(qpn.value() % kSlots);
    ASSERT_TRUE(nic.destroy_qp(qpn));
  }
  EXPECT_EQ(slots.size(), 64u);
}

TEST(QueuePair, AreNotHandedOutBeyondTheLimit) {
  Nic nic({.max_qps = 3});
  std::set<Qpn> numbers;
  for (int i = 0; i < 3; ++i) numbers.insert(*nic.create_qp({}));
  EXPECT_EQ(numbers.size(), 3u);
  EXPECT_EQ(nic.create_qp({}).error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(nic.destroy_qp(*numbers.begin()));
  EXPECT_TRUE(nic.create_qp({}));
}

TEST(QueuePair, IsCreatedWithTheLargestQueuesAndRefusedBeyondThem) {
  Nic nic({});
  EXPECT_TRUE(nic.create_qp({.cap = kMaxCap}));
  const std::pair<std::uint32_t QpCap::*, const char*> limits[] = {
      {&QpCap::max_send_wr, "max_send_wr"},
      {&QpCap::max_recv_wr, "max_recv_wr"},
      {&QpCap::max_send_sge, "max_send_sge"},
      {&QpCap::max_recv_sge, "max_recv_sge"},
      {&QpCap::max_inline, "max_inline"}};
  for (const auto& [limit, name] : limits) {
    QpCap cap = kMaxCap;
    ++(cap.*limit);
    const auto refused = nic.create_qp({.cap = cap});
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().text, HasSubstr(name));
  }
}

TEST(QueuePair, DestructionForgetsWorkInFlight) {
  TwoHosts hosts;
  hosts.b.receive(1, 0, 100);
  hosts.a.send(1, 0, 100);
  const auto p = hosts.a.transmit_all();
  hosts.b.deliver(p);  // owes an ACK
  ASSERT_TRUE(hosts.b.nic.destroy_qp(hosts.b.qpn));
  EXPECT_FALSE(hosts.b.nic.wants_to_transmit());
  hosts.a.send(2, 0, 100);
  ASSERT_TRUE(hosts.a.nic.destroy_qp(hosts.a.qpn));
  EXPECT_FALSE(hosts.a.nic.wants_to_transmit());
  EXPECT_EQ(hosts.a.nic.deadline(), wire::kNever);
  hosts.b.deliver(p);
  EXPECT_EQ(hosts.b.count(Counter::kRxDropUnknownQp), 1u);
}

}  // namespace
}  // namespace cepheus::rnic::testing
