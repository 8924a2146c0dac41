// The requester's ACK timer: time-outs, probes, and the restarts of the timer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/test_requester.h"
#include "wire/times.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::AckKind;
using wire::NakCode;

TEST_F(Requester, ProbesWithOnePacketWithAckReqAfterATimeOut) {
  a_.send(1, 0, 256 * 3);
  sent();
  const Instant due = a_.nic.deadline();
  EXPECT_EQ(due, hosts_.now + std::chrono::nanoseconds(4096 << 14));
  pass(due - hosts_.now - std::chrono::nanoseconds(1));
  EXPECT_THAT(sent(), IsEmpty());
  pass(std::chrono::nanoseconds(1));
  const auto again = a_.transmit_all();
  EXPECT_THAT(psns(again), ElementsAre(100));
  EXPECT_TRUE(again[0].requests_ack());
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 1u);
  ack(100);
  EXPECT_THAT(sent(), ElementsAre(101, 102));
}

TEST_F(Requester, SendsNothingTwiceIfOnlyTheAnswerWasLate) {
  a_.send(1, 0, 256 * 3);
  sent();
  pass(a_.nic.deadline() - hosts_.now);
  EXPECT_THAT(sent(), ElementsAre(100));
  ack(102);
  EXPECT_THAT(a_.ids(), ElementsAre(1));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(Requester, ASequenceNakEndsTheProbing) {
  a_.send(1, 0, 256 * 3);
  sent();
  pass(a_.nic.deadline() - hosts_.now);
  EXPECT_THAT(sent(), ElementsAre(100));
  nak(100);
  EXPECT_THAT(sent(), ElementsAre(100, 101, 102));
}

TEST_F(Requester, WaitsAtLeastTheFloorForAnAck) {
  TwoHosts hosts({.timeout_code = 4});  // 65 us
  hosts.a.send(1, 0, 10);
  hosts.a.transmit_all();
  EXPECT_EQ(hosts.a.nic.deadline(), hosts.now + milliseconds(50));
}

TEST_F(Requester, DoublesTheTimeOutWithoutAnswersIfConfigured) {
  TwoHosts hosts({.timeout_code = 14}, {.timeout_doublings = 2});
  hosts.a.send(1, 0, 10);
  const auto first = std::chrono::nanoseconds(4096 << 14);
  for (const int factor : {1, 2, 4, 4}) {
    hosts.a.transmit_all();
    EXPECT_EQ(hosts.a.nic.deadline(), hosts.now + factor * first);
    EXPECT_TRUE(hosts.pass_deadline());
  }
}

// UCX's default is code 18. A connection to a process that has exited must not wait for minutes.
TEST_F(Requester, DoublesALongTimeOutOnlyUpToALimit) {
  const auto wait = [](std::uint8_t code) { return std::chrono::nanoseconds(4096LL << code); };
  const auto waits_of = [](std::uint8_t code) {
    TwoHosts hosts({.timeout_code = code}, {.timeout_doublings = 6});
    hosts.a.send(1, 0, 10);
    std::vector<Duration> waits;
    for (int i = 0; i < 8; ++i) {
      hosts.a.transmit_all();
      waits.push_back(hosts.a.nic.deadline() - hosts.now);
      hosts.pass_deadline();
    }
    EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kRetryExceeded));
    return waits;
  };
  EXPECT_THAT(waits_of(14), ElementsAre(wait(14), wait(15), wait(16), wait(17), wait(18), wait(19),
                                        wait(20), wait(20)));
  constexpr Duration kMost = wire::times::kSourceRepeats;
  EXPECT_THAT(waits_of(18),
              ElementsAre(wait(18), wait(19), wait(20), kMost, kMost, kMost, kMost, kMost));
  EXPECT_THAT(waits_of(21), Each(wait(21)));
}

// docs/protocol.md, "Timers of the hosts", has this table. Waits do not grow, as with NICs that keep
// to the code's value.
TEST_F(Requester, OutlastsASilentPeerByItsCodeAndItsRetries) {
  const auto gives_up_after = [](std::uint8_t code, std::uint8_t retries) {
    TwoHosts hosts({.timeout_code = code, .retry_count = retries}, {.timeout_doublings = 0});
    hosts.a.send(1, 0, 10);
    const Instant begin = hosts.now;
    while (hosts.a.statuses().empty()) {
      hosts.a.transmit_all();
      hosts.pass_deadline();
    }
    EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kRetryExceeded));
    return std::chrono::round<std::chrono::milliseconds>(hosts.now - begin).count();
  };
  const auto row = [&](std::uint8_t code) {
    return std::pair(gives_up_after(code, 3), gives_up_after(code, 7));
  };
  EXPECT_EQ(row(14), std::pair(268L, 537L));
  EXPECT_EQ(row(15), std::pair(537L, 1'074L)) << "outlasts 1 s";
  EXPECT_EQ(row(16), std::pair(1'074L, 2'147L)) << "outlasts 2 s";
  EXPECT_EQ(row(17), std::pair(2'147L, 4'295L));
  EXPECT_EQ(row(18), std::pair(4'295L, 8'590L)) << "outlasts an eviction on rdma_rxe";
  constexpr auto kEviction =
      std::chrono::duration_cast<std::chrono::milliseconds>(wire::times::kLeaderEvicts).count();
  EXPECT_LT(row(17).second, kEviction);
  EXPECT_GT(row(18).second, kEviction);
}

TEST_F(Requester, EverySequenceNakWithoutProgressSpendsARetryIfConfigured) {
  TwoHosts hosts({.mtu = 256}, {.every_nak_counts = true});
  hosts.a.send(1, 0, 256 * 2);
  ASSERT_EQ(hosts.a.qpn, a_.qpn);
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(psns(hosts.a.transmit_all()), ElementsAre(100, 101));
    hosts.a.deliver(answer(100, AckKind::kNak, static_cast<std::uint8_t>(NakCode::kSequenceError)));
  }
  EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kRetryExceeded));
}

// A NAK proves one receiver alive, not all receivers behind a virtual peer. Only progress does.
TEST_F(Requester, ASequenceNakWithoutProgressDoesNotRestartTheDoubling) {
  TwoHosts hosts({.timeout_code = 14}, {.timeout_doublings = 6});
  hosts.a.send(1, 0, 10);
  const auto first = std::chrono::nanoseconds(4096 << 14);
  for (const int factor : {1, 2, 4}) {
    hosts.a.transmit_all();
    EXPECT_EQ(hosts.a.nic.deadline(), hosts.now + factor * first);
    hosts.pass_deadline();
  }
  hosts.a.transmit_all();
  ASSERT_EQ(hosts.a.qpn, a_.qpn);
  hosts.a.deliver(answer(100, AckKind::kNak, static_cast<std::uint8_t>(NakCode::kSequenceError)));
  hosts.a.transmit_all();
  EXPECT_EQ(hosts.a.nic.deadline(), hosts.now + 8 * first);
}

TEST_F(Requester, WaitsForEverWithTimeoutZero) {
  TwoHosts hosts({.timeout_code = 0});
  hosts.a.send(1, 0, 10);
  hosts.a.transmit_all();
  EXPECT_EQ(hosts.a.nic.deadline(), wire::kNever);
}

TEST_F(Requester, ProgressRestartsTheTimer) {
  a_.send(1, 0, 256 * 3);
  sent();
  pass(milliseconds(60));
  ack(100);
  pass(milliseconds(60));
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 0u);
  pass(milliseconds(10));
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 1u);
}

TEST_F(Requester, LaterMessagesDoNotDelayTheTimeOutOfALostOne) {
  for (std::uint64_t id = 1; id <= 7; ++id) {
    a_.send(id, 0, 256);
    sent();
    pass(milliseconds(10));
  }
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 1u);
}

TEST_F(Requester, LaterReadsDoNotDelayTheTimeOutOfALostOne) {
  for (std::uint64_t id = 1; id <= 2; ++id) {
    a_.read(id, kResult, 256, hosts_.b, 0);
    ASSERT_EQ(sent().size(), 1u);
    pass(milliseconds(35));
  }
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 1u);
}

TEST_F(Requester, AnAcknowledgementGivesLaterMessagesTheirOwnTime) {
  for (std::uint64_t id = 1; id <= 2; ++id) {
    a_.send(id, 0, 256);
    sent();
    pass(milliseconds(40));
    ack(100);
  }
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 0u);
  pass(milliseconds(28));
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 1u);
}

// Congestion control may send so slowly that a window takes longer than a time-out.
TEST_F(Requester, ASlowSenderDoesNotTimeOutBeforeItRequestsAnAck) {
  a_.send(1, 0, 256 * 32);
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(a_.transmit());
    pass(milliseconds(10));
  }
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 0u);
  pass(milliseconds(60));
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 1u);
}

}  // namespace
}  // namespace cepheus::rnic::testing
