// Numbers that wrap or grow without end, at their edges: PSNs and message counters of 24 bits by
// millions of packets without payload, packet counts and times by their start values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using wire::AckKind;
using wire::NakCode;
using wire::Opcode;

constexpr std::uint32_t kHalfCircle = 1u << 23;
constexpr std::uint32_t kCircle = 1u << 24;

// Host b after any number of host a's packets, without host a having to send them.
class FarResponder : public ::testing::Test {
 protected:
  FarResponder() : hosts_({.mtu = 256}), a_(hosts_.a), b_(hosts_.b) {
    a_.write(1, 0, 0, b_, 0);
    empty_write_ = a_.transmit();
    b_.deliver(*empty_write_);
    b_.transmit_all();
  }

  // That many WRITEs without data, each a message of one packet.
  void jump(std::uint32_t packets) {
    wire::Frame frame =
        with_headers(*empty_write_, [](auto& h) { h.bth.ack_request = false; }).frame();
    frame.icrc_state = wire::Icrc::kDeferred;
    std::uint8_t* const psn = frame.bytes.data() + wire::kBthOffset + 9;
    NicOutput out;
    for (std::uint32_t n = 0; n < packets; ++n) {
      const std::uint32_t next = (expected() + n) & Psn::kMask;
      psn[0] = static_cast<std::uint8_t>(next >> 16);
      psn[1] = static_cast<std::uint8_t>(next >> 8);
      psn[2] = static_cast<std::uint8_t>(next);
      b_.nic.on_packet(hosts_.now, frame, out);
    }
    jumped_ += packets;
    ASSERT_EQ(b_.nic.query_qp(b_.qpn)->rq_psn, Psn(expected()));
    b_.nic.check_consistent();
  }
  // The next PSN that host b expects.
  std::uint32_t expected() const { return (start_ + jumped_) & Psn::kMask; }

  // Host b's answer to a repeated packet that lies `behind` the next one.
  Packet answer_to_duplicate(const Packet& like, std::uint32_t behind) {
    b_.deliver(with_headers(like, [&](auto& h) { h.bth.psn = Psn(expected()) - behind; }));
    const auto answers = b_.transmit_all();
    EXPECT_EQ(answers.size(), 1u);
    return answers.at(0);
  }
  void expect_ack_of_all(std::uint32_t behind) {
    const Packet ack = answer_to_duplicate(*empty_write_, behind);
    EXPECT_EQ(ack.opcode(), Opcode::kRcAcknowledge);
    EXPECT_EQ(Psn(ack.psn()), Psn(expected()) - 1) << behind << " behind";
  }

  TwoHosts hosts_;
  Host& a_;
  Host& b_;
  std::optional<Packet> empty_write_;
  std::uint32_t start_ = 101;
  std::uint32_t jumped_ = 0;
};

TEST_F(FarResponder, ForgetsAReadBeforeItsPsnSeemsToLieAhead) {
  a_.read(2, kResult, 10, b_, 0);
  b_.deliver(a_.transmit_all());
  a_.deliver(b_.transmit_all());
  ++start_;
  EXPECT_EQ(answer_to_duplicate(*empty_write_, 2).psn(), 100u) << "it precedes the READ";
  for (const std::uint32_t far :
       {kHalfCircle - 2, kHalfCircle - 1, kHalfCircle, kHalfCircle + 1, kCircle - 1, kCircle}) {
    ASSERT_NO_FATAL_FAILURE(jump(far - jumped_));
    for (const std::uint32_t behind : {1u, 2u, 1000u, kHalfCircle - 3}) expect_ack_of_all(behind);
  }
}

TEST_F(FarResponder, CallsItADuplicateHalfACircleBackAndAGapHalfACircleAhead) {
  ASSERT_NO_FATAL_FAILURE(jump(kHalfCircle + 10));
  expect_ack_of_all(kHalfCircle);
  const Packet nak = answer_to_duplicate(*empty_write_, kHalfCircle + 1);
  EXPECT_EQ(nak.headers().aeth.kind, AckKind::kNak);
  EXPECT_EQ(nak.psn(), expected());
}

TEST_F(FarResponder, CountsMessagesAroundTheCircle) {
  ASSERT_NO_FATAL_FAILURE(jump(kCircle - 2));
  EXPECT_EQ(answer_to_duplicate(*empty_write_, 1).headers().aeth.msn, kCircle - 1);
  ASSERT_NO_FATAL_FAILURE(jump(1));
  EXPECT_EQ(answer_to_duplicate(*empty_write_, 1).headers().aeth.msn, 0u);
}

// The simulator's shortcut must equal the packets.
TEST_F(FarResponder, EqualsOneThatReceivedThePackets) {
  for (const std::uint32_t packets : {kHalfCircle + 10, kCircle - 1}) {
    ASSERT_TRUE(b_.nic.jump(b_.qpn, 0, packets));
    jumped_ += packets;
    EXPECT_EQ(b_.nic.query_qp(b_.qpn)->rq_psn, Psn(expected()));
    b_.nic.check_consistent();
    expect_ack_of_all(kHalfCircle);
    EXPECT_EQ(answer_to_duplicate(*empty_write_, 1).headers().aeth.msn, (1 + jumped_) & Psn::kMask);
  }
}

TEST_F(FarResponder, JumpsWithItsPeerAndOnlyWhileIdle) {
  a_.write(2, 0, 10, b_, 0);
  EXPECT_FALSE(a_.nic.jump(a_.qpn, kCircle, 0)) << "a request is posted";
  b_.deliver(a_.transmit_all());
  EXPECT_FALSE(b_.nic.jump(b_.qpn, 0, kCircle)) << "it owes an ACK";
  a_.deliver(b_.transmit_all());
  EXPECT_FALSE(a_.nic.jump(Qpn(a_.qpn.value() + 1), 1, 0)) << "another queue pair";
  const Psn before = a_.nic.query_qp(a_.qpn)->sq_psn;
  ASSERT_TRUE(a_.nic.jump(a_.qpn, kHalfCircle + 1, 0));
  ASSERT_TRUE(b_.nic.jump(b_.qpn, 0, kHalfCircle + 1));
  EXPECT_EQ(a_.nic.query_qp(a_.qpn)->sq_psn, before + kHalfCircle + 1);
  a_.completions.clear();
  a_.write(3, 0, 10, b_, 0);
  b_.deliver(a_.transmit_all());
  a_.deliver(b_.transmit_all());
  EXPECT_EQ(a_.completions.size(), 1u);
}

TEST_F(FarResponder, ARepeatedAtomicGivesItsOwnResultAndNotAnEarlierOneOfItsPsn) {
  const auto add = [&](std::uint64_t id) {
    a_.atomic(id, SendOp::kFetchAdd, kResult, b_, 0, 1);
    const Packet request =
        with_headers(a_.transmit_all().at(0), [&](auto& h) { h.bth.psn = Psn(expected()); });
    b_.deliver(request);
    const auto answers = b_.transmit_all();
    EXPECT_EQ(answers.size(), 1u);
    ++start_;
    return std::pair(request, answers.at(0).headers().atomic_ack.original);
  };
  b_.set_word(0, 7);
  EXPECT_EQ(add(2).second, 7u);
  ASSERT_NO_FATAL_FAILURE(jump(kCircle - 1));
  const auto [request, original] = add(3);
  EXPECT_EQ(original, 8u);
  EXPECT_EQ(answer_to_duplicate(request, 1).headers().atomic_ack.original, 8u);
  EXPECT_EQ(b_.word(0), 9u);
}

// Host a's packets, 2^31 bytes a message. The peer has no memory for them: only the requester is
// tested.
class FarRequester : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kMessage = 1u << 31;  // 2^23 packets of 256 bytes
  static constexpr NicConfig without_payload() {
    NicConfig config;
    config.make_icrc = false;
    config.moves_payload = false;
    return config;
  }
  FarRequester() : hosts_({.mtu = 256, .first_psn = Psn(5)}, without_payload()), a_(hosts_.a) {
    big_ = *a_.nic.register_memory(Host::kPd, a_.memory.data(), kMessage, 0, kAllAccess);
  }

  void post(std::uint64_t id) {
    const Sge sge{0, kMessage, big_.lkey};
    ASSERT_TRUE(a_.post(SendWr{.wr_id = id, .signaled = true, .sges = {&sge, 1}}));
  }
  // Continues until `until` packets have been sent in all, each window acknowledged.
  void send(std::uint64_t until) {
    std::vector<std::uint8_t> buffer(4096);
    while (sent_ < until) {
      wire::Frame frame;
      if (!a_.nic.transmit(hosts_.now, buffer, frame, out_)) {
        ASSERT_LT(acknowledged_, sent_) << "nothing to send";
        acknowledge(sent_ - 1);
        continue;
      }
      const std::uint8_t* const psn = frame.bytes.data() + wire::kBthOffset + 9;
      ASSERT_EQ(static_cast<std::uint32_t>(psn[0] << 16 | psn[1] << 8 | psn[2]),
                (5 + sent_) & Psn::kMask);
      ++sent_;
    }
  }
  void acknowledge(std::uint64_t packet) {
    answer(packet, AckKind::kAck, wire::Aeth::kNoCreditLimit);
    acknowledged_ = packet + 1;
  }
  void answer(std::uint64_t packet, AckKind kind, std::uint8_t value) {
    wire::RoceHeaders h;
    h.ip.source = hosts_.b.nic.config().address;
    h.ip.destination = a_.nic.config().address;
    h.bth.opcode = Opcode::kRcAcknowledge;
    h.bth.destination_qp = a_.qpn;
    h.bth.psn = Psn(5) + static_cast<std::int64_t>(packet);
    h.aeth.kind = kind;
    h.aeth.value = value;
    wire::Frame frame;
    h.emit(frame, 0);
    frame.icrc_state = wire::Icrc::kDeferred;
    a_.nic.on_packet(hosts_.now, frame, out_);
  }

  TwoHosts hosts_;
  Host& a_;
  MemoryKeys big_;
  NicOutput out_;
  std::uint64_t sent_ = 0;
  std::uint64_t acknowledged_ = 0;
};

TEST_F(FarRequester, AcceptsAcksOfPacketsInFlightOnlyAllAroundTheCircle) {
  for (std::uint64_t id = 1; id <= 3; ++id) post(id);
  for (const std::uint64_t edge : {std::uint64_t{kHalfCircle}, std::uint64_t{kCircle},
                                   std::uint64_t{kCircle} + kHalfCircle - 100}) {
    ASSERT_NO_FATAL_FAILURE(send(edge + 20));
    acknowledge(edge - 10);
    const std::uint64_t stale = a_.count(Counter::kRxDropStaleAck);
    answer(edge - 11, AckKind::kAck, wire::Aeth::kNoCreditLimit);  // has been acknowledged
    answer(sent_, AckKind::kAck, wire::Aeth::kNoCreditLimit);      // was never sent
    answer(edge - 11 + kHalfCircle, AckKind::kAck, wire::Aeth::kNoCreditLimit);
    answer(edge - 11 - kHalfCircle, AckKind::kNak,
           static_cast<std::uint8_t>(NakCode::kSequenceError));
    EXPECT_EQ(a_.count(Counter::kRxDropStaleAck), stale + 4);
    a_.nic.check_consistent();
    answer(edge + 5, AckKind::kNak, static_cast<std::uint8_t>(NakCode::kSequenceError));
    a_.nic.check_consistent();
    EXPECT_EQ(a_.count(Counter::kRxDropStaleAck), stale + 4);
    acknowledged_ = sent_ = edge + 5;  // it goes back
  }
  ASSERT_NO_FATAL_FAILURE(send(3 * std::uint64_t{kHalfCircle}));
  acknowledge(sent_ - 1);
  ASSERT_EQ(out_.completions.size(), 3u);
  for (const Completion& c : out_.completions) EXPECT_EQ(c.status, WcStatus::kSuccess);
  EXPECT_EQ(a_.nic.query_qp(a_.qpn)->sq_psn, Psn(5 + 3 * kHalfCircle));
}

class FarTime : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(FarTime, TimeOutsAndRnrWaitsPassTheEdge) {
  for (const auto before : {std::chrono::milliseconds(0), std::chrono::milliseconds(1),
                            std::chrono::milliseconds(60)}) {
    TwoHosts hosts({.mtu = 256});
    hosts.now = wire::Instant(std::chrono::nanoseconds(GetParam())) - before;
    hosts.a.send(1, 0, 600);
    int lost = 0;
    hosts.run_until_idle([&](const Packet&, const Host& from) {
      if (&from == &hosts.b && hosts.a.count(Counter::kRxRnrNak) == 1) {
        hosts.b.receive(1, 0, 600);
      }
      return &from == &hosts.a && lost++ < 3;
    });
    EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(hosts.a.count(Counter::kAckTimeouts), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Edges, FarTime,
                         ::testing::Values(std::int64_t{1} << 23, std::int64_t{1} << 24,
                                           std::int64_t{1} << 31, std::int64_t{1} << 32,
                                           std::int64_t{1} << 53, std::int64_t{1} << 62));

TEST(FarUnreliable, MessagesPassTheCirclesEdges) {
  for (const std::uint32_t edge : {kHalfCircle, kCircle}) {
    for (std::uint32_t before = 0; before < 8; ++before) {
      TwoHosts hosts({.type = QpType::kUc, .mtu = 256, .first_psn = Psn(edge - before)});
      for (std::uint64_t id = 1; id <= 4; ++id) {
        hosts.b.receive(id, 0, 600);
        hosts.a.send(id, 0, 600);
      }
      int packets = 0;
      hosts.exchange([&](const Packet&, const Host&) { return ++packets == 5; });
      EXPECT_THAT(hosts.b.ids(), ElementsAre(1, 2, 3)) << "the second message lacks a packet";
      EXPECT_THAT(hosts.b.statuses(), Each(WcStatus::kSuccess));
    }
  }
}

}  // namespace
}  // namespace cepheus::rnic::testing
