// The requester against losses, NAKs, time-outs and wrong answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/test_requester.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::AckKind;
using wire::NakCode;

TEST_F(Requester, GoesBackToTheMissingPacketOnSequenceNak) {
  a_.send(1, 0, 256 * 5);
  EXPECT_THAT(sent(), ElementsAre(100, 101, 102, 103, 104));
  nak(102);
  EXPECT_THAT(sent(), ElementsAre(102, 103, 104));
  EXPECT_EQ(a_.count(Counter::kTxRetransmitted), 3u);
  EXPECT_EQ(a_.count(Counter::kRxNakSequence), 1u);
  ack(104);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST_F(Requester, IgnoresTheSecondOfTwoEqualNaks) {
  a_.send(1, 0, 256 * 4);
  sent();
  nak(101);
  nak(101);
  EXPECT_THAT(sent(), ElementsAre(101, 102, 103));
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(Requester, IgnoresAcksOfUnsentPackets) {
  a_.send(1, 0, 256);
  sent();
  a_.send(2, 0, 256);  // posted, not sent
  ack(101);
  ack(5000);
  ack(99);
  EXPECT_THAT(a_.completions, IsEmpty());
  EXPECT_EQ(a_.count(Counter::kRxDropStaleAck), 3u);
  nak(101);
  rnr(101, 1);
  EXPECT_EQ(a_.count(Counter::kRxDropStaleAck), 5u);
  ack(100);
  EXPECT_THAT(a_.ids(), ElementsAre(1));
  EXPECT_EQ(a_.count(Counter::kRxAck), 1u);
}

TEST_F(Requester, AcceptsAnAckOfAPacketThatItIsAboutToResend) {
  a_.send(1, 0, 256 * 3);
  a_.send(2, 0, 256 * 3);
  sent();
  nak(101);
  EXPECT_EQ(a_.transmit()->psn(), 101u);
  ack(103);  // the rest of the first flight had arrived after all
  EXPECT_THAT(a_.ids(), ElementsAre(1));
  EXPECT_THAT(sent(), ElementsAre(104, 105));
}

TEST_F(Requester, DropsReservedSyndromes) {
  a_.send(1, 0, 256);
  sent();
  a_.deliver(answer(100, AckKind::kReserved, 0));
  a_.deliver(answer(100, AckKind::kNak, 5));
  a_.deliver(answer(100, AckKind::kNak, 31));
  EXPECT_EQ(a_.count(Counter::kRxDropMalformed), 3u);
  EXPECT_EQ(a_.state(), QpState::kRts);
  EXPECT_THAT(a_.completions, IsEmpty());
}

TEST_F(Requester, FailsWithRetryExceededAndFlushesInOrder) {
  a_.send(1, 0, 256);
  SendWr unsignalled{.wr_id = 2, .sges = {}};
  ASSERT_TRUE(a_.post(unsignalled));
  a_.send(3, 0, 256);
  a_.receive(4, 0, 256);
  a_.receive(5, 0, 256);
  int flights = 0;
  for (; a_.state() == QpState::kRts && flights < 100; ++flights) {
    EXPECT_EQ(psns(a_.transmit_all()).front(), 100u);
    pass(milliseconds(100));
  }
  EXPECT_EQ(flights, 8) << "once and seven retries";
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kRetryExceeded, WcStatus::kFlush,
                                         WcStatus::kFlush, WcStatus::kFlush, WcStatus::kFlush));
  EXPECT_EQ(a_.count(Counter::kRetriesExceeded), 1u);
  EXPECT_EQ(a_.state(), QpState::kErr);
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_EQ(a_.nic.deadline(), wire::kNever);
}

TEST_F(Requester, ProgressGivesAllRetriesBack) {
  a_.send(1, 0, 256 * 3);
  for (const std::uint32_t psn : {100u, 101u, 102u}) {
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(sent().front(), psn);
      pass(milliseconds(100));
    }
    ack(psn);
  }
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
}

// A peer sends NAK(e) once. Another one after the repeat was duplicated or delayed.
TEST_F(Requester, ASequenceNakThatComesAgainSpendsNoRetry) {
  a_.send(1, 0, 256 * 2);
  sent();
  nak(100);
  EXPECT_THAT(sent(), ElementsAre(100, 101));
  for (int i = 0; i < 8; ++i) {
    nak(100);
    EXPECT_THAT(sent(), IsEmpty());
  }
  EXPECT_EQ(a_.count(Counter::kRxNakSequence), 9u);
  nak(101);
  EXPECT_THAT(sent(), ElementsAre(101)) << "a NAK of another packet counts";
  for (int i = 0; i < 6; ++i) {  // one retry went with the NAK
    pass(milliseconds(100));
    EXPECT_THAT(sent(), ElementsAre(101));
  }
  EXPECT_THAT(a_.statuses(), IsEmpty());
  pass(milliseconds(100));
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kRetryExceeded));
}

TEST_F(Requester, SendsOnePacketAfterAnRnrWaitAndThenTheRest) {
  a_.send(1, 0, 256 * 4);
  sent();
  rnr(101, 14);
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_EQ(a_.nic.deadline(), hosts_.now + microseconds(1280));
  nak(101);  // some receivers send this for the packets behind the refused one
  EXPECT_THAT(sent(), IsEmpty()) << "must not shorten the wait";
  pass(microseconds(1280));
  const auto probe = a_.transmit_all();
  ASSERT_THAT(psns(probe), ElementsAre(101));
  EXPECT_TRUE(probe[0].requests_ack());
  ack(101);
  EXPECT_THAT(sent(), ElementsAre(102, 103));
  ack(103);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST_F(Requester, ProbesAgainWhenTheProbeIsLost) {
  a_.send(1, 0, 256 * 4);
  sent();
  rnr(100, 1);
  pass(milliseconds(1));
  EXPECT_THAT(sent(), ElementsAre(100));
  pass(milliseconds(100));
  EXPECT_THAT(sent(), ElementsAre(100));
  ack(100);
  EXPECT_THAT(sent(), ElementsAre(101, 102, 103));
}

TEST_F(Requester, AnAckEndsAnRnrWait) {
  a_.send(1, 0, 256 * 2);
  sent();
  rnr(100, 0);
  ack(101);  // of a packet that had a receive
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
  EXPECT_EQ(a_.nic.deadline(), wire::kNever);
}

TEST_F(Requester, BoundsTheTimerThatAPeerRequests) {
  TwoHosts hosts({}, {.max_rnr_wait = milliseconds(5)});
  hosts.a.send(1, 0, 10);
  const auto request = hosts.a.transmit_all();
  hosts.b.deliver(request);  // no receive is posted
  hosts.a.deliver(with_headers(*hosts.b.transmit(), [](auto& h) { h.aeth.value = 0; }));  // 655 ms
  EXPECT_EQ(hosts.a.nic.deadline(), hosts.now + milliseconds(5));
}

TEST_F(Requester, SevenRnrRetriesAreForEver) {
  a_.send(1, 0, 256);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_THAT(sent(), ElementsAre(100));
    rnr(100, 1);
    pass(milliseconds(1));
  }
  sent();
  ack(100);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
}

class FewRetries : public Requester {
 protected:
  FewRetries() : Requester({.mtu = 256, .retry_count = 0, .rnr_retry = 2}) {}
};

TEST_F(FewRetries, FailWithRnrRetryExceeded) {
  a_.send(1, 0, 256);
  a_.send(2, 0, 256);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(sent().empty());
    rnr(100, 1);
    pass(milliseconds(1));
  }
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kRnrRetryExceeded, WcStatus::kFlush));
  EXPECT_EQ(a_.count(Counter::kRnrRetriesExceeded), 1u);
}

TEST_F(FewRetries, ZeroFailsOnTheFirstTimeOut) {
  a_.send(1, 0, 256);
  sent();
  pass(milliseconds(100));
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kRetryExceeded));
}

TEST_F(Requester, FatalNakFailsItsRequestAndCompletesThoseBefore) {
  const std::pair<NakCode, WcStatus> cases[] = {
      {NakCode::kInvalidRequest, WcStatus::kRemoteInvalidRequest},
      {NakCode::kRemoteAccess, WcStatus::kRemoteAccess},
      {NakCode::kRemoteOperational, WcStatus::kRemoteOperation},
  };
  for (const auto& [code, status] : cases) {
    TwoHosts hosts;
    for (std::uint64_t id : {1, 2, 3}) hosts.a.send(id, 0, 10);
    hosts.a.transmit_all();
    Packet nak = answer(101, AckKind::kNak, static_cast<std::uint8_t>(code));
    hosts.a.deliver(with_headers(nak, [&](auto& h) { h.bth.destination_qp = hosts.a.qpn; }));
    EXPECT_THAT(hosts.a.ids(), ElementsAre(1, 2, 3));
    EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kSuccess, status, WcStatus::kFlush));
    EXPECT_EQ(hosts.a.state(), QpState::kErr);
    EXPECT_EQ(hosts.a.count(Counter::kRxNakFatal), 1u);
  }
}

TEST_F(Requester, LocalProtectionErrorWaitsForTheRequestsBefore) {
  a_.send(1, 0, 256);
  Sge bad = a_.piece(0, 256);
  bad.lkey ^= 0x80000000;
  ASSERT_TRUE(a_.post(SendWr{.wr_id = 2, .sges = {&bad, 1}}));
  a_.send(3, 0, 256);
  EXPECT_THAT(sent(), ElementsAre(100));
  EXPECT_EQ(a_.state(), QpState::kRts);
  ack(100);
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2, 3));
  EXPECT_THAT(a_.statuses(),
              ElementsAre(WcStatus::kSuccess, WcStatus::kLocalProtection, WcStatus::kFlush));
}

TEST_F(Requester, LocalProtectionErrorAloneFailsAtOnce) {
  const Sge outside = a_.piece(Host::kMemory - 10, 11);
  ASSERT_TRUE(a_.post(SendWr{.wr_id = 2, .sges = {&outside, 1}}));
  EXPECT_THAT(sent(), IsEmpty());
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kLocalProtection));
  EXPECT_EQ(a_.state(), QpState::kErr);
}

// No packet before the one that can't be read asks for an ACK, and without time-outs none comes.
TEST_F(Requester, LocalProtectionErrorInMidMessageWaitsForNoAck) {
  TwoHosts hosts({.mtu = 256, .timeout_code = 0});
  Host& a = hosts.a;
  a.send(1, 0, 256);
  Sge pieces[] = {a.piece(0, 256 * 25), a.piece(0, 256)};
  pieces[1].lkey ^= 0x80000000;
  ASSERT_TRUE(a.post(SendWr{.wr_id = 2, .sges = pieces}));
  a.send(3, 0, 256);
  const auto packets = a.transmit_all();
  ASSERT_EQ(packets.size(), 26u);
  EXPECT_THAT(a.completions, IsEmpty()) << "the first request ends first";
  hosts.b.receive(1, 0, 256);
  hosts.b.deliver(packets[0]);
  a.deliver(hosts.b.transmit_all());
  EXPECT_THAT(a.ids(), ElementsAre(1, 2, 3));
  EXPECT_THAT(a.statuses(),
              ElementsAre(WcStatus::kSuccess, WcStatus::kLocalProtection, WcStatus::kFlush));
}

TEST_F(Requester, NoticesARegionThatGoesAwayUnderWay) {
  a_.send(1, 0, 256 * 3);
  EXPECT_EQ(a_.transmit()->psn(), 100u);
  ASSERT_TRUE(a_.nic.deregister_memory(a_.keys.lkey));
  EXPECT_THAT(sent(), IsEmpty());
  ack(100);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kLocalProtection));
}

TEST_F(Requester, RefusesRequestsBeyondTheQueuePairsLimits) {
  const std::vector<Sge> five(5, a_.piece(0, 1));
  const auto sges = a_.post(SendWr{.sges = five});
  ASSERT_FALSE(sges);
  EXPECT_EQ(sges.error().code, wire::ErrorCode::kInvalid);
  std::vector<std::uint8_t> data(129);
  const Sge big{reinterpret_cast<std::uint64_t>(data.data()), 129, 0};
  const auto inlined = a_.post(SendWr{.inline_data = true, .sges = {&big, 1}});
  ASSERT_FALSE(inlined);
  EXPECT_EQ(inlined.error().code, wire::ErrorCode::kInvalid);
  EXPECT_FALSE(a_.nic.wants_to_transmit());
}

TEST_F(Requester, FailsAMessageThatIsTooLongInItsTurn) {
  const Sge half{0, 0x80000000, 0};
  const Sge pair[] = {half, {0, 1, 0}};
  a_.send(1, 0, 10);
  ASSERT_TRUE(a_.post(SendWr{.wr_id = 2, .sges = pair}));
  EXPECT_EQ(a_.transmit_all().size(), 1u);
  EXPECT_THAT(a_.statuses(), IsEmpty());
  ack(100);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess, WcStatus::kLocalLength));
}

}  // namespace
}  // namespace cepheus::rnic::testing
