// The requester against losses, NAKs, time-outs and wrong answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/nic_testing.h"
#include "wire/times.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::AckKind;
using wire::NakCode;
using wire::Opcode;

// Host a's requests; the test answers as host b.
class Requester : public ::testing::Test {
 protected:
  explicit Requester(const QpOptions& options = {.mtu = 256}) : hosts_(options), a_(hosts_.a) {}

  Packet answer(std::uint32_t psn, AckKind kind, std::uint8_t value = 31) {
    const NicConfig& b = hosts_.b.nic.config();
    wire::RoceHeaders h;
    h.ethernet = {b.gateway, b.mac, wire::Ethernet::kIpv4};
    h.ip.source = b.address;
    h.ip.destination = a_.nic.config().address;
    h.udp.source_port = 0xC000;
    h.bth.opcode = Opcode::kRcAcknowledge;
    h.bth.destination_qp = a_.qpn;
    h.bth.psn = Psn(psn);
    h.aeth = {kind, value, 0};
    wire::Frame frame;
    h.emit(frame, 0);
    frame.payload_len = 0;
    frame.external = nullptr;
    Packet packet;
    packet.bytes.resize(frame.size());
    frame.to_bytes(packet.bytes);
    return packet;
  }
  void ack(std::uint32_t psn) { a_.deliver(answer(psn, AckKind::kAck)); }
  void nak(std::uint32_t psn, NakCode code = NakCode::kSequenceError) {
    a_.deliver(answer(psn, AckKind::kNak, static_cast<std::uint8_t>(code)));
  }
  void rnr(std::uint32_t psn, std::uint8_t timer) {
    a_.deliver(answer(psn, AckKind::kRnrNak, timer));
  }

  static std::vector<std::uint32_t> psns(const std::vector<Packet>& packets) {
    std::vector<std::uint32_t> list;
    for (const Packet& p : packets) list.push_back(p.psn());
    return list;
  }
  std::vector<std::uint32_t> sent() { return psns(a_.transmit_all()); }
  void pass(Duration time) {
    hosts_.now += time;
    a_.tick();
  }

  TwoHosts hosts_;
  Host& a_;
};

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

TEST_F(Requester, TakesANakAsAcknowledgementOfAllBelow) {
  a_.send(1, 0, 256);
  a_.send(2, 0, 256);
  a_.send(3, 0, 256);
  sent();
  nak(102);
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2));
  EXPECT_THAT(sent(), ElementsAre(102));
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
  const Sge half{0, 0x80000000, 0};
  const Sge pair[] = {half, {0, 1, 0}};
  EXPECT_FALSE(a_.post(SendWr{.sges = pair}));
  EXPECT_FALSE(a_.nic.wants_to_transmit());
}

TEST_F(Requester, CountsCnps) {
  a_.deliver(with_headers(answer(0, AckKind::kAck), [](auto& h) { h.bth.opcode = Opcode::kCnp; }));
  EXPECT_EQ(a_.count(Counter::kRxCnp), 1u);
  EXPECT_EQ(a_.state(), QpState::kRts);
}

}  // namespace
}  // namespace cepheus::rnic::testing
