// Congestion control of queue pairs: marks, notifications, rates.
#include "nic-emulator/engine/congestion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/nic_testing.h"
#include "wire/times.h"

namespace cepheus::rnic::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Ecn;
using wire::Opcode;

constexpr std::uint64_t kGiga = 1'000'000'000;

// Switches derive their counting period for notifications from this time.
TEST(CongestionTimes, AreThoseThatSwitchesExpect) {
  EXPECT_EQ(CongestionConfig().cnp_interval, wire::times::kCnpGap);
}

NicConfig with(Notification notification, std::uint64_t gigabits = 10) {
  CongestionConfig congestion;
  congestion.notification = notification;
  congestion.link = {gigabits * kGiga};
  NicConfig config;
  config.congestion = congestion;
  return config;
}

Packet marked(const Packet& packet) {
  return with_headers(packet, [](wire::RoceHeaders& h) {
    h.ip.tos = static_cast<std::uint8_t>(h.ip.tos | static_cast<int>(Ecn::kExperienced));
  });
}

std::vector<Opcode> opcodes(const std::vector<Packet>& packets) {
  std::vector<Opcode> list;
  for (const Packet& p : packets) list.push_back(p.opcode());
  return list;
}

Ecn ecn(const Packet& packet) { return wire::ecn_of(packet.headers().ip.tos); }

// Host a sends to host b.
class Congestion : public ::testing::Test {
 protected:
  explicit Congestion(const NicConfig& config = with(Notification::kCnp))
      : hosts_({.mtu = 1024}, config), a_(hosts_.a), b_(hosts_.b) {}

  std::uint64_t rate() { return a_.nic.congestion(hosts_.now, a_.qpn)->rate.bits_per_second; }
  // Passes one packet of host a to host b with a mark. Returns host b's answers.
  std::vector<Packet> answers_to_mark() {
    b_.receive(1, 0, 1024);
    a_.send(1, 0, 1024);
    b_.deliver(marked(*a_.transmit()));
    return b_.transmit_all();
  }

  TwoHosts hosts_;
  Host &a_, &b_;
};

TEST_F(Congestion, DataIsEcnCapableAndAnswersAreNot) {
  b_.receive(1, 0, 1024);
  a_.send(1, 0, 1024);
  const Packet data = *a_.transmit();
  EXPECT_EQ(ecn(data), Ecn::kEct0);
  b_.deliver(data);
  const std::vector<Packet> answers = b_.transmit_all();
  EXPECT_THAT(opcodes(answers), ElementsAre(Opcode::kRcAcknowledge));
  EXPECT_EQ(ecn(answers[0]), Ecn::kNotCapable);
  EXPECT_EQ(b_.count(Counter::kRxCeMarked), 0u);
}

TEST_F(Congestion, AMarkIsAnsweredWithACnpBeforeTheAck) {
  const std::vector<Packet> answers = answers_to_mark();
  EXPECT_THAT(opcodes(answers), ElementsAre(Opcode::kCnp, Opcode::kRcAcknowledge));
  const wire::RoceHeaders cnp = answers[0].headers();
  EXPECT_TRUE(cnp.bth.becn);
  EXPECT_EQ(cnp.bth.destination_qp, a_.qpn);
  EXPECT_EQ(cnp.ip.destination, a_.nic.config().address);
  EXPECT_EQ(wire::ecn_of(cnp.ip.tos), Ecn::kNotCapable);
  EXPECT_THAT(answers[0].data(), Each(0));
  EXPECT_EQ(b_.count(Counter::kRxCeMarked), 1u);
  EXPECT_EQ(b_.count(Counter::kTxCnp), 1u);
}

TEST_F(Congestion, CnpsAreFiftyMicrosecondsApart) {
  answers_to_mark();
  hosts_.now += 49us;
  EXPECT_THAT(opcodes(answers_to_mark()), ElementsAre(Opcode::kRcAcknowledge));
  hosts_.now += 1us;
  EXPECT_THAT(opcodes(answers_to_mark()), ElementsAre(Opcode::kCnp, Opcode::kRcAcknowledge));
  EXPECT_EQ(b_.count(Counter::kRxCeMarked), 3u);
}

// A packet of 1082 bytes takes 865.6 ns at 10 Gb/s, and twice that after a cut.
TEST_F(Congestion, ACnpSlowsDownAndPacketsKeepTheirDistance) {
  a_.deliver(answers_to_mark());
  EXPECT_EQ(rate(), 5 * kGiga);
  EXPECT_EQ(a_.count(Counter::kRxCnp), 1u);
  EXPECT_EQ(a_.count(Counter::kRateCuts), 1u);
  a_.send(2, 0, 4096);
  ASSERT_TRUE(a_.transmit());
  EXPECT_FALSE(a_.transmit());
  EXPECT_FALSE(a_.nic.wants_to_transmit());
  EXPECT_EQ(a_.nic.deadline(), hosts_.now + 1731ns);
  hosts_.now += 1730ns;
  a_.tick();
  EXPECT_FALSE(a_.transmit());
  hosts_.now += 1ns;
  a_.tick();
  EXPECT_TRUE(a_.transmit());
  EXPECT_FALSE(a_.transmit());
  EXPECT_EQ(a_.count(Counter::kPacedWaits), 2u);
  EXPECT_EQ(a_.nic.congestion(hosts_.now, Qpn(0)), std::nullopt);
}

TEST_F(Congestion, ShowsTheRateThatAQueuePairHasRecovered) {
  a_.deliver(answers_to_mark());
  EXPECT_TRUE(a_.nic.congestion(hosts_.now, a_.qpn)->is_limited);
  hosts_.now += 10s;  // no packet was sent in this time
  EXPECT_FALSE(a_.nic.congestion(hosts_.now, a_.qpn)->is_limited);
  EXPECT_EQ(rate(), 10 * kGiga);
}

TEST_F(Congestion, WithoutStateNoPacketWaits) {
  a_.send(2, 0, 4096);
  EXPECT_EQ(a_.transmit_all().size(), 4u);
  EXPECT_EQ(a_.count(Counter::kPacedWaits), 0u);
}

TEST_F(Congestion, WithoutDataThereIsNoTimer) {
  a_.deliver(answers_to_mark());
  b_.receive(2, 0, 1024);
  a_.send(2, 0, 1024);
  b_.deliver(*a_.transmit());
  a_.deliver(b_.transmit_all());
  EXPECT_EQ(a_.nic.deadline(), wire::kNever);
  a_.send(3, 0, 1024);
  EXPECT_FALSE(a_.transmit()) << "too soon";
  EXPECT_EQ(a_.nic.deadline(), hosts_.now + 1731ns);
  a_.receive(4, 0, 1024);
  hosts_.pass_deadline();
  b_.receive(3, 0, 1024);
  b_.deliver(*a_.transmit());
  a_.deliver(b_.transmit_all());
  hosts_.now += 2us;
  a_.send(4, 0, 1024);
  EXPECT_TRUE(a_.transmit()) << "its time has passed, even without a timer";
}

TEST_F(Congestion, RepeatsKeepTheirDistanceToo) {
  a_.deliver(answers_to_mark());
  b_.receive(2, 0, 4096);
  a_.send(2, 0, 4096);
  const Packet lost = *a_.transmit();
  hosts_.pass_deadline();
  b_.deliver(*a_.transmit());
  a_.deliver(b_.transmit_all());
  ASSERT_EQ(a_.count(Counter::kRxNakSequence), 1u);
  EXPECT_FALSE(a_.transmit()) << "two were just sent";
  hosts_.pass_deadline();
  EXPECT_EQ(a_.transmit()->psn(), lost.psn());
  EXPECT_EQ(a_.count(Counter::kTxRetransmitted), 1u);
  EXPECT_FALSE(a_.transmit());
}

TEST_F(Congestion, AnswersDoNotWait) {
  a_.deliver(answers_to_mark());
  a_.send(2, 0, 4096);
  a_.receive(1, 0, 1024);
  ASSERT_TRUE(a_.transmit());
  ASSERT_FALSE(a_.transmit());
  b_.send(3, 0, 1024);
  a_.deliver(*b_.transmit());
  EXPECT_THAT(opcodes(a_.transmit_all()), ElementsAre(Opcode::kRcAcknowledge));
}

TEST_F(Congestion, MarkedReadResponsesSlowTheResponderDown) {
  a_.read(1, 0, 1024, b_, 0);
  b_.deliver(*a_.transmit());
  const Packet response = *b_.transmit();
  EXPECT_EQ(ecn(response), Ecn::kEct0);
  a_.deliver(marked(response));
  const std::vector<Packet> answers = a_.transmit_all();
  ASSERT_THAT(opcodes(answers), ElementsAre(Opcode::kCnp));
  b_.deliver(answers);
  EXPECT_TRUE(b_.nic.congestion(hosts_.now, b_.qpn)->is_limited);
}

TEST_F(Congestion, AQueuePairThatBeginsAgainHasForgottenIt) {
  a_.deliver(answers_to_mark());
  a_.send(2, 0, 4096);
  a_.transmit_all();
  ASSERT_TRUE(a_.to(QpState::kReset));
  EXPECT_FALSE(a_.nic.congestion(hosts_.now, a_.qpn)->is_limited);
  EXPECT_EQ(a_.nic.deadline(), wire::kNever);
}

// Two queue pairs to the same peer: one that waits does not delay the other.
TEST_F(Congestion, OthersGoOnWhileOneWaits) {
  a_.deliver(answers_to_mark());
  a_.send(1, 0, 4096);
  const Qpn slow = a_.qpn;
  ASSERT_TRUE(a_.transmit());
  ASSERT_FALSE(a_.transmit());
  a_.create(hosts_.options);
  ASSERT_TRUE(a_.to_init(hosts_.options));
  ASSERT_TRUE(a_.to_rtr(hosts_.options, b_, Psn(1)));
  ASSERT_TRUE(a_.to_rts(hosts_.options, Psn(1)));
  a_.send(2, 0, 4096);
  EXPECT_EQ(a_.transmit_all().size(), 4u);
  a_.qpn = slow;
  hosts_.pass_deadline();
  EXPECT_EQ(a_.transmit_all().size(), 1u);
}

TEST_F(Congestion, ALateDriverMayCatchUpALittle) {
  NicConfig config = with(Notification::kCnp);
  config.congestion->catch_up = 10us;
  TwoHosts hosts({.mtu = 1024}, config);
  hosts.b.receive(1, 0, 1024);
  hosts.a.send(1, 0, 1024);
  hosts.b.deliver(marked(*hosts.a.transmit()));
  hosts.a.deliver(hosts.b.transmit_all());
  hosts.a.send(2, 0, 32768);
  hosts.now += 5us;  // nothing was sent in this time
  EXPECT_EQ(hosts.a.transmit_all().size(), 6u) << "10 us of 5 Gb/s, begun";
  hosts.now += 1s;
  hosts.a.tick();
  EXPECT_LE(hosts.a.transmit_all().size(), 12u) << "not the packets of a whole second";
}

class CeEcho : public Congestion {
 protected:
  CeEcho() : Congestion(with(Notification::kCeEcho)) {}
};

TEST_F(CeEcho, EachMarkIsEchoedByAnAck) {
  b_.receive(1, 0, 4096);
  a_.send(1, 0, 4096);
  const std::vector<Packet> data = a_.transmit_all();
  ASSERT_FALSE(data[0].requests_ack());
  b_.deliver(data[0]);
  EXPECT_THAT(b_.transmit_all(), IsEmpty());
  b_.deliver(marked(data[1]));
  const std::vector<Packet> answers = b_.transmit_all();
  ASSERT_THAT(opcodes(answers), ElementsAre(Opcode::kRcAcknowledge));
  EXPECT_EQ(answers[0].psn(), data[1].psn());
  EXPECT_TRUE(answers[0].headers().bth.becn);
  b_.deliver(data[2]);
  b_.deliver(data[3]);
  const std::vector<Packet> last = b_.transmit_all();
  ASSERT_THAT(opcodes(last), ElementsAre(Opcode::kRcAcknowledge));
  EXPECT_FALSE(last[0].headers().bth.becn);
  EXPECT_EQ(b_.count(Counter::kTxCeEcho), 1u);
  a_.deliver(answers);
  EXPECT_EQ(rate(), 5 * kGiga);
  EXPECT_EQ(a_.count(Counter::kRxCeEcho), 1u);
  EXPECT_EQ(a_.count(Counter::kRxCnp), 0u);
}

// The echo is sent in the NAK and must not replace it.
TEST_F(CeEcho, OfAPacketBehindAGapIsSentInTheNak) {
  b_.receive(1, 0, 4096);
  a_.send(1, 0, 4096);
  const std::vector<Packet> data = a_.transmit_all();
  b_.deliver(marked(data[1]));
  const std::vector<Packet> answers = b_.transmit_all();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].headers().aeth.is_sequence_nak());
  EXPECT_TRUE(answers[0].headers().bth.becn);
}

TEST_F(CeEcho, OfAReadsResponseIsACnp) {
  a_.read(1, 0, 1024, b_, 0);
  b_.deliver(*a_.transmit());
  a_.deliver(marked(*b_.transmit()));
  EXPECT_THAT(opcodes(a_.transmit_all()), ElementsAre(Opcode::kCnp));
}

TEST(NoCongestionControl, IsNotEcnCapableAndAnswersNoMarks) {
  TwoHosts hosts({.mtu = 1024});
  hosts.b.receive(1, 0, 1024);
  hosts.a.send(1, 0, 1024);
  const Packet data = *hosts.a.transmit();
  EXPECT_EQ(ecn(data), Ecn::kNotCapable);
  hosts.b.deliver(marked(data));
  const std::vector<Packet> answers = hosts.b.transmit_all();
  EXPECT_THAT(opcodes(answers), ElementsAre(Opcode::kRcAcknowledge));
  hosts.a.deliver(with_headers(answers[0], [](auto& h) { h.bth.becn = true; }));
  hosts.a.send(2, 0, 4096);
  EXPECT_EQ(hosts.a.transmit_all().size(), 4u);
  EXPECT_EQ(hosts.a.nic.congestion(hosts.now, hosts.a.qpn), std::nullopt);
}

}  // namespace
}  // namespace cepheus::rnic::testing
