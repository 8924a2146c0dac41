// One queue of receives for several QPs: the order of use, and the limit event.
#include "nic-emulator/engine/shared_receive_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "nic-emulator/engine/nic_testing.h"
#include "nic-emulator/engine/qp_table.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class Srq : public ::testing::TestWithParam<QpType>, protected BetweenHosts {
 protected:
  Srq() : BetweenHosts({.type = GetParam(), .mtu = 256, .shared = true}) {}

  void send(std::uint64_t id, std::uint32_t length) {
    if (GetParam() == QpType::kUd) {
      a_.datagram(id, 0, length, b_, hosts_.options.qkey);
    } else {
      a_.send(id, 0, length);
    }
  }
};

std::string name_of(const ::testing::TestParamInfo<QpType>& info) {
  const char* const names[] = {"Rc", "Uc", "Ud"};
  return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Services, Srq, ::testing::Values(QpType::kRc, QpType::kUc, QpType::kUd),
                         name_of);

TEST_P(Srq, ServesMessagesInTheOrderOfItsReceives) {
  for (std::uint64_t i = 0; i < 3; ++i) b_.receive(i, 1000 * i, 1000);
  for (std::uint64_t i = 0; i < 3; ++i) send(i, 600);
  hosts_.exchange();
  EXPECT_THAT(b_.ids(), ElementsAre(0, 1, 2));
  EXPECT_EQ(b_.completions[0].qpn, b_.qpn);
}

TEST_P(Srq, ReportsOnceThatFewReceivesAreLeft) {
  NicOutput out;
  for (std::uint64_t i = 0; i < 4; ++i) b_.receive(i, 0, 1000);
  ASSERT_TRUE(b_.nic.arm_srq(*b_.srq, 3, out));
  EXPECT_THAT(out.events, IsEmpty());
  EXPECT_EQ(b_.nic.query_srq(*b_.srq)->limit, 3u);
  for (std::uint64_t i = 0; i < 3; ++i) send(i, 10);
  hosts_.exchange();
  std::size_t events = 0;
  for (const AsyncEvent& e : b_.events) {
    if (e.kind != AsyncEventKind::kSrqLimitReached) continue;
    ++events;
    EXPECT_EQ(e.srq, *b_.srq);
  }
  EXPECT_EQ(events, 1u);
  EXPECT_EQ(b_.nic.query_srq(*b_.srq)->limit, 0u);
  ASSERT_TRUE(b_.nic.arm_srq(*b_.srq, 2, out));
  EXPECT_EQ(out.events.size(), 1u) << "one is left: at once";
}

TEST_P(Srq, ReportsAsSoonAsFewerReceivesThanTheLimitAreLeft) {
  for (std::uint64_t i = 0; i < 3; ++i) b_.receive(i, 0, 1000);
  NicOutput out;
  ASSERT_TRUE(b_.nic.arm_srq(*b_.srq, 2, out));
  const auto reports = [&] {
    return std::ranges::count(b_.events, AsyncEventKind::kSrqLimitReached, &AsyncEvent::kind);
  };
  send(1, 10);
  hosts_.exchange();
  EXPECT_EQ(reports(), 0) << "as many as the limit";
  send(2, 10);
  hosts_.exchange();
  EXPECT_EQ(reports(), 1);
}

TEST_P(Srq, LeavesItsReceivesToOthersWhenAQueuePairFails) {
  b_.receive(1, 0, 1000);
  ASSERT_TRUE(b_.to(QpState::kErr));
  EXPECT_THAT(b_.completions, IsEmpty());
  ASSERT_EQ(b_.events.size(), 1u);
  EXPECT_EQ(b_.events[0].kind, AsyncEventKind::kLastWqeReached);
  EXPECT_EQ(b_.events[0].qpn, b_.qpn);
  EXPECT_EQ(b_.nic.post_recv(hosts_.now, b_.qpn, {}, *std::make_unique<NicOutput>()).error().code,
            wire::ErrorCode::kInvalid)
      << "receives go to the shared queue";
  const SrqId srq = *b_.srq;
  EXPECT_EQ(b_.nic.destroy_srq(srq).error().code, wire::ErrorCode::kAgain) << "in use";
  ASSERT_TRUE(b_.nic.destroy_qp(b_.qpn));
  EXPECT_TRUE(b_.nic.destroy_srq(srq));
  EXPECT_EQ(b_.nic.query_srq(srq).error().code, wire::ErrorCode::kInvalid);
}

TEST(SrqOfRc, FlushesTheReceiveOfAMessageInProgress) {
  TwoHosts hosts({.mtu = 256, .shared = true});
  hosts.b.receive(1, 0, 1000);
  hosts.b.receive(2, 0, 1000);
  hosts.a.send(1, 0, 600);
  hosts.b.deliver(*hosts.a.transmit());
  ASSERT_TRUE(hosts.b.to(QpState::kErr));
  EXPECT_THAT(hosts.b.ids(), ElementsAre(1));
  EXPECT_THAT(hosts.b.statuses(), ElementsAre(WcStatus::kFlush));
}

TEST(SrqOfRc, AnEmptyQueueMeansReceiverNotReady) {
  TwoHosts hosts({.shared = true});
  hosts.a.send(1, 0, 600);
  hosts.b.deliver(*hosts.a.transmit());
  EXPECT_EQ(hosts.b.transmit()->headers().aeth.kind, wire::AckKind::kRnrNak);
}

TEST(SrqLimits, AreNamedWhenExceeded) {
  TwoHosts hosts({.shared = true});
  Nic& nic = hosts.b.nic;
  NicOutput out;
  EXPECT_EQ(nic.create_srq({.max_wr = 1u << 30}).error().code, wire::ErrorCode::kInvalid);
  EXPECT_EQ(nic.arm_srq(*hosts.b.srq, 65, out).error().code, wire::ErrorCode::kInvalid);
  const std::vector<Sge> five(5, hosts.b.piece(0, 1));
  EXPECT_EQ(hosts.b.post(RecvWr{.sges = five}).error().code, wire::ErrorCode::kInvalid);
  for (int i = 0; i < 64; ++i) hosts.b.receive(1, 0, 1);
  EXPECT_EQ(hosts.b.post(RecvWr{}).error().code, wire::ErrorCode::kAgain);
  EXPECT_EQ(nic.create_qp({.cap = {}, .srq = 77}).error().code, wire::ErrorCode::kInvalid);
}

TEST(SrqTable, HasSoManyQueuesAndUsesNumbersAgain) {
  SrqTable table(2);
  EXPECT_EQ(table.create({})->id(), 0u);
  EXPECT_EQ(table.create({})->id(), 1u);
  EXPECT_EQ(table.create({}), nullptr);
  table.destroy(0);
  EXPECT_EQ(table.create({})->id(), 0u);
}

// A refused request behind a READ whose memory goes away: one failure, and one of each event.
TEST(SharedReceives, AQueuePairThatFailsTwiceReportsItOnce) {
  TwoHosts hosts({.mtu = 256, .shared = true});
  Host &a = hosts.a, &b = hosts.b;
  a.read(1, 0, 100, b, 0);
  const auto read = a.transmit_all();
  a.write(2, 0, 100, b, 0);
  const auto write = with_headers(*a.transmit(), [](auto& h) { h.reth.rkey ^= 1; });
  b.deliver(read);
  b.deliver(write);
  ASSERT_EQ(b.state(), QpState::kErr);
  ASSERT_TRUE(b.nic.deregister_memory(b.keys.lkey));
  a.deliver(b.transmit_all());
  EXPECT_THAT(a.statuses(), ElementsAre(WcStatus::kRemoteAccess, WcStatus::kFlush));
  std::vector<AsyncEventKind> kinds;
  for (const AsyncEvent& each : b.events) kinds.push_back(each.kind);
  EXPECT_THAT(
      kinds, UnorderedElementsAre(AsyncEventKind::kQpAccessError, AsyncEventKind::kLastWqeReached));
}

}  // namespace
}  // namespace cepheus::rnic::testing
