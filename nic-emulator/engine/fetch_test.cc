// READs and atomics: packets, losses and repeats, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::AckKind;
using wire::NakCode;
using wire::Opcode;

class Fetch : public ::testing::Test, protected BetweenHosts {
 protected:
  explicit Fetch(const QpOptions& options = {.mtu = 256}, const NicConfig& config = {})
      : BetweenHosts(options, config) {
    fill_pattern(b_.memory, 2);
  }

  bool same(std::size_t at_a, std::size_t at_b, std::size_t length) const {
    return std::equal(a_.memory.begin() + static_cast<long>(at_a),
                      a_.memory.begin() + static_cast<long>(at_a + length),
                      b_.memory.begin() + static_cast<long>(at_b));
  }
  static std::vector<Opcode> opcodes(const std::vector<Packet>& packets) {
    std::vector<Opcode> list;
    for (const Packet& p : packets) list.push_back(p.opcode());
    return list;
  }
  // Changes a's next request and passes it to b. Returns the NAK's code.
  template <typename Change>
  static int refusal(TwoHosts& hosts, Change change) {
    hosts.b.deliver(with_headers(*hosts.a.transmit(), change));
    const auto answers = hosts.b.transmit_all();
    if (answers.size() != 1 || answers[0].opcode() != Opcode::kRcAcknowledge) return -1;
    const wire::Aeth aeth = answers[0].headers().aeth;
    hosts.a.deliver(answers);
    return aeth.kind == AckKind::kNak && hosts.b.state() == QpState::kErr ? aeth.value : -1;
  }
};

TEST_F(Fetch, AReadTakesThePsnsOfItsResponses) {
  a_.read(1, kResult, 600, b_, 0);
  b_.receive(7, 0x50000, 100);
  a_.send(2, 0, 100);
  const auto requests = a_.transmit_all();
  ASSERT_EQ(opcodes(requests), (std::vector{Opcode::kRcReadRequest, Opcode::kRcSendOnly}));
  EXPECT_EQ(requests[0].psn(), 100u);
  EXPECT_EQ(requests[1].psn(), 103u);
  b_.deliver(requests);
  const auto answers = b_.transmit_all();
  ASSERT_EQ(opcodes(answers),
            (std::vector{Opcode::kRcReadResponseFirst, Opcode::kRcReadResponseMiddle,
                         Opcode::kRcReadResponseLast, Opcode::kRcAcknowledge}));
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i].psn(), 100 + i);
  a_.deliver(answers);
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2));
  EXPECT_THAT(a_.statuses(), Each(WcStatus::kSuccess));
  EXPECT_EQ(a_.completions[0].opcode, WcOpcode::kRead);
  EXPECT_EQ(a_.completions[0].byte_len, 600u);
  EXPECT_TRUE(same(kResult, 0, 600));
  EXPECT_EQ(a_.nic.deadline(), wire::kNever);
}

TEST_F(Fetch, AnEmptyReadTakesOnePsnAndNoKey) {
  a_.read(1, kResult, 0, b_, 0);
  const Packet request = with_headers(*a_.transmit(), [](auto& h) { h.reth.rkey = 0; });
  b_.deliver(request);
  const auto answers = b_.transmit_all();
  ASSERT_EQ(opcodes(answers), std::vector{Opcode::kRcReadResponseOnly});
  a_.deliver(answers);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST_F(Fetch, ALostResponseIsRequestedAgainFromThereOn) {
  a_.read(1, kResult, 256 * 4, b_, 0);
  b_.deliver(a_.transmit_all());
  auto answers = b_.transmit_all();
  answers.erase(answers.begin() + 1);
  a_.deliver(answers);
  EXPECT_EQ(a_.count(Counter::kRxMissingResult), 2u);
  const auto again = a_.transmit_all();
  ASSERT_EQ(again.size(), 1u) << "requested once per gap";
  EXPECT_EQ(again[0].psn(), 101u);
  EXPECT_EQ(again[0].headers().reth.dma_length, 256u * 3);
  EXPECT_EQ(again[0].headers().reth.virtual_address, b_.piece(256, 0).address);
  b_.deliver(again);
  a_.deliver(b_.transmit_all());
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
  EXPECT_TRUE(same(kResult, 0, 256 * 4));
}

// The second loss shows by the second answer to the requests behind it, long before a time-out.
TEST_F(Fetch, ResponsesThatAreLostTimeAndAgainAreRequestedFourTimes) {
  for (std::uint64_t id = 1; id <= 3; ++id) a_.read(id, kResult, 100, b_, 0);
  for (int round = 0; round < 5; ++round) {
    const auto requests = a_.transmit_all();
    ASSERT_EQ(requests.size(), 3u) << "round " << round;
    b_.deliver(requests);
    auto answers = b_.transmit_all();
    ASSERT_EQ(answers.size(), 3u);
    answers.erase(answers.begin());
    a_.deliver(answers);
  }
  EXPECT_THAT(a_.transmit_all(), IsEmpty()) << "the other retries are left to time-outs";
  EXPECT_EQ(a_.count(Counter::kAckTimeouts), 0u);
  hosts_.pass_deadline();
  hosts_.exchange();
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2, 3));
}

// One answer behind the lost one never steps back: it comes again when both are repeated.
TEST_F(Fetch, AResponseThatIsLostTwiceBeforeASingleAnswerIsRequestedAgain) {
  for (const bool is_read : {true, false}) {
    TwoHosts hosts({.mtu = 256});
    hosts.a.read(1, kResult, 100, hosts.b, 0);
    if (is_read) {
      hosts.a.read(2, kResult, 100, hosts.b, 0);
    } else {
      hosts.b.receive(7, 0x50000, 100);
      hosts.a.send(2, 0, 10);
    }
    for (int round = 0; round < 3; ++round) {
      const auto requests = hosts.a.transmit_all();
      ASSERT_EQ(requests.size(), 2u) << "round " << round;
      hosts.b.deliver(requests);
      const auto answers = hosts.b.transmit_all();
      ASSERT_EQ(answers.size(), 2u);
      hosts.a.deliver(answers[1]);
    }
    hosts.exchange();
    EXPECT_THAT(hosts.a.ids(), ElementsAre(1, 2));
    EXPECT_EQ(hosts.a.count(Counter::kAckTimeouts), 0u);
  }
}

TEST_F(Fetch, ADuplicateBeforeTheRepeatRequestsNothingMore) {
  for (std::uint64_t id = 1; id <= 2; ++id) a_.read(id, kResult, 100, b_, 0);
  b_.deliver(a_.transmit_all());
  const auto answers = b_.transmit_all();
  a_.deliver(answers[1]);
  EXPECT_EQ(a_.transmit()->psn(), 100u);
  a_.deliver(answers[1]);
  EXPECT_EQ(a_.transmit()->psn(), 101u) << "the repeat goes on";
}

// Each step back looks like the answer to a repeat.
TEST_F(Fetch, ResponsesInReverseOrderDoNotSpendTheLastRetry) {
  TwoHosts hosts({.mtu = 256, .retry_count = 1});
  for (std::uint64_t id = 1; id <= 3; ++id) hosts.a.read(id, kResult, 100, hosts.b, 0);
  hosts.b.deliver(hosts.a.transmit_all());
  const auto answers = hosts.b.transmit_all();
  ASSERT_EQ(answers.size(), 3u);
  for (std::size_t i = answers.size(); i-- > 0;) {
    hosts.a.deliver(answers[i]);
    hosts.b.deliver(hosts.a.transmit_all());
  }
  hosts.exchange();
  EXPECT_THAT(hosts.a.ids(), ElementsAre(1, 2, 3));
  EXPECT_THAT(hosts.a.statuses(), Each(WcStatus::kSuccess));
}

TEST_F(Fetch, ARepeatedReadIsReadAgainFromMemory) {
  a_.read(1, kResult, 10, b_, 0);
  const Packet request = *a_.transmit();
  b_.deliver(request);
  (void)b_.transmit_all();
  b_.memory[0] ^= 0xFF;
  b_.deliver(request);
  const auto answers = b_.transmit_all();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].data()[0], b_.memory[0]);
  EXPECT_EQ(b_.count(Counter::kRxDuplicate), 1u);
}

// The requester repeats all of them in one batch, before the responder answers any.
TEST_F(Fetch, AllRequestsThatAreRepeatedAtOnceAreAnswered) {
  a_.read(1, kResult, 600, b_, 0);
  a_.atomic(2, SendOp::kFetchAdd, kResult + 1024, b_, 2048, 5);
  a_.read(3, kResult + 2048, 300, b_, 4096);
  const auto requests = a_.transmit_all();
  ASSERT_EQ(requests.size(), 3u);
  b_.deliver(requests);
  (void)b_.transmit_all();  // lost
  b_.deliver(requests);
  a_.deliver(b_.transmit_all());
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(same(kResult, 0, 600));
  EXPECT_TRUE(same(kResult + 2048, 4096, 300));
  EXPECT_EQ(b_.count(Counter::kRxDropStaleRequest), 0u);
}

// The requester repeats its requests while their answers are in flight, then continues.
TEST_F(Fetch, RepeatedRequestsThatCrossedTheirAnswersLeaveSpaceForTheNextOne) {
  for (std::uint64_t id = 1; id <= 4; ++id) a_.read(id, kResult, 100, b_, 0);
  const auto requests = a_.transmit_all();
  ASSERT_EQ(requests.size(), 4u) << "as many as the responder keeps";
  b_.deliver(requests);
  const auto answers = b_.transmit_all();
  a_.deliver(answers);
  a_.read(5, kResult, 100, b_, 0);
  const auto next = a_.transmit_all();
  b_.deliver(requests);
  b_.deliver(next);
  a_.deliver(b_.transmit_all());
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(a_.statuses(), Each(WcStatus::kSuccess));
  EXPECT_EQ(b_.state(), QpState::kRts);
}

TEST_F(Fetch, ARepeatedRequestReplacesResultsBehindIt) {
  a_.read(1, kResult, 600, b_, 0);
  a_.read(2, kResult + 1024, 100, b_, 1024);
  const auto requests = a_.transmit_all();
  b_.deliver(requests);
  ASSERT_TRUE(b_.transmit());  // the first of three packets; all three are lost
  b_.deliver(requests[0]);
  const auto answers = b_.transmit_all();
  EXPECT_EQ(opcodes(answers),
            (std::vector{Opcode::kRcReadResponseFirst, Opcode::kRcReadResponseMiddle,
                         Opcode::kRcReadResponseLast}))
      << "the requester repeats the second request, too";
}

TEST_F(Fetch, ARequestThatIsRepeatedBeforeItsAnswerChangesNothing) {
  a_.read(1, kResult, 100, b_, 0);
  a_.read(2, kResult + 1024, 100, b_, 1024);
  const auto requests = a_.transmit_all();
  b_.deliver(requests);
  b_.deliver(requests[0]);
  a_.deliver(b_.transmit_all());
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2));
}

TEST_F(Fetch, ARepeatedRequestLeavesTheAckOfALaterMessageOwed) {
  a_.read(1, kResult, 600, b_, 0);
  b_.receive(7, 0x50000, 100);
  a_.send(2, 0, 100);
  const auto requests = a_.transmit_all();
  b_.deliver(requests[0]);
  (void)b_.transmit_all();  // all are lost
  b_.deliver(requests[1]);
  b_.deliver(requests[0]);
  const auto answers = b_.transmit_all();
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[3].opcode(), Opcode::kRcAcknowledge);
  EXPECT_EQ(answers[3].psn(), 103u);
}

TEST_F(Fetch, RepeatedRequestsBeyondTheResponsesThatFitAreDropped) {
  a_.read(1, kResult, 256 * (kMaxRdAtomic + 1), b_, 0);
  const Packet request = *a_.transmit();
  b_.deliver(request);
  (void)b_.transmit_all();
  for (std::uint32_t i = 0; i <= kMaxRdAtomic; ++i) {
    b_.deliver(with_headers(request, [i](auto& h) {
      h.bth.psn = h.bth.psn + i;
      h.reth.dma_length = 256;
    }));
  }
  EXPECT_EQ(b_.transmit_all().size(), kMaxRdAtomic);
  EXPECT_EQ(b_.count(Counter::kRxDropStaleRequest), 1u);
}

TEST_F(Fetch, ARepeatedReadThatCannotBeServedIsDropped) {
  a_.read(1, kResult, 10, b_, 0);
  const Packet request = *a_.transmit();
  b_.deliver(request);
  a_.deliver(b_.transmit_all());
  ASSERT_TRUE(b_.nic.deregister_memory(b_.keys.lkey));
  b_.deliver(request);
  EXPECT_THAT(b_.transmit_all(), IsEmpty());
  EXPECT_EQ(b_.count(Counter::kRxDropStaleRequest), 1u);
  EXPECT_EQ(b_.state(), QpState::kRts);
}

TEST_F(Fetch, MemoryThatGoesAwayUnderAReadIsAnAccessError) {
  a_.read(1, kResult, 256 * 3, b_, 0);
  b_.deliver(*a_.transmit());
  a_.deliver(*b_.transmit());
  ASSERT_TRUE(b_.nic.deregister_memory(b_.keys.lkey));
  const auto rest = b_.transmit_all();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].psn(), 101u);
  a_.deliver(rest);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kRemoteAccess));
  EXPECT_EQ(b_.state(), QpState::kErr);
}

TEST_F(Fetch, AFenceWaitsForResultsBeforeIt) {
  const Sge sge = a_.piece(0, 10);
  a_.read(1, kResult, 10, b_, 0);
  ASSERT_TRUE(a_.post(SendWr{.wr_id = 2, .signaled = true, .fence = true, .sges = {&sge, 1}}));
  b_.receive(7, 0x50000, 100);
  const auto first = a_.transmit_all();
  EXPECT_EQ(opcodes(first), std::vector{Opcode::kRcReadRequest});
  b_.deliver(first);
  a_.deliver(b_.transmit_all());
  EXPECT_EQ(opcodes(a_.transmit_all()), std::vector{Opcode::kRcSendOnly});
}

TEST_F(Fetch, AtomicsGiveTheOldValueAndChangeTheWordOnce) {
  b_.set_word(64, 40);
  a_.atomic(1, SendOp::kFetchAdd, kResult, b_, 64, 2);
  a_.atomic(2, SendOp::kCompareSwap, kResult + 8, b_, 64, 42, 7);
  a_.atomic(3, SendOp::kCompareSwap, kResult + 16, b_, 64, 42, 8);
  const auto requests = a_.transmit_all();
  b_.deliver(requests);
  (void)b_.transmit_all();  // all answers lost
  EXPECT_TRUE(hosts_.pass_deadline());
  hosts_.exchange();
  EXPECT_EQ(a_.word(kResult), 40u);
  EXPECT_EQ(a_.word(kResult + 8), 42u);
  EXPECT_EQ(a_.word(kResult + 16), 7u);
  EXPECT_EQ(b_.word(64), 7u);
  EXPECT_THAT(a_.statuses(), Each(WcStatus::kSuccess));
  EXPECT_EQ(a_.completions[1].opcode, WcOpcode::kCompareSwap);
  EXPECT_EQ(a_.completions[1].byte_len, 8u);
}

TEST_F(Fetch, RefusalsHaveTheCodeOfTheirReason) {
  const auto access = std::pair(2, std::vector{WcStatus::kRemoteAccess});
  const auto invalid = std::pair(1, std::vector{WcStatus::kRemoteInvalidRequest});
  const auto read = [](auto change) {
    TwoHosts hosts;
    hosts.a.read(1, kResult, 100, hosts.b, 0);
    const int code = refusal(hosts, change);
    return std::pair(code, hosts.a.statuses());
  };
  EXPECT_EQ(read([](auto& h) { h.reth.rkey ^= 1; }), access);
  EXPECT_EQ(read([](auto& h) { h.reth.dma_length = 1u << 30; }), access);
  EXPECT_EQ(read([](auto& h) { h.reth.dma_length = 0x80000001; }), invalid);
  const auto atomic = [](auto change) {
    TwoHosts hosts;
    hosts.a.atomic(1, SendOp::kFetchAdd, kResult, hosts.b, 0, 1);
    const int code = refusal(hosts, change);
    return std::pair(code, hosts.a.statuses());
  };
  EXPECT_EQ(atomic([](auto& h) { h.atomic.rkey ^= 1; }), access);
  EXPECT_EQ(atomic([](auto& h) { h.atomic.virtual_address += 1 << 20; }), access);
  EXPECT_EQ(atomic([](auto& h) { h.atomic.virtual_address += 4; }), invalid);
}

TEST_F(Fetch, MoreReadsThanTheResponderKeepsAreRefused) {
  TwoHosts hosts({.max_rd_atomic = 1});
  hosts.a.read(1, kResult, 10, hosts.b, 0);
  const Packet request = *hosts.a.transmit();
  hosts.b.deliver(request);
  hosts.b.deliver(with_headers(request, [](auto& h) { h.bth.psn = h.bth.psn + 1; }));
  const auto answers = hosts.b.transmit_all();
  ASSERT_EQ(answers.size(), 2u) << "the first one's result, and the refusal";
  EXPECT_EQ(answers[0].opcode(), Opcode::kRcReadResponseOnly);
  EXPECT_EQ(answers[1].headers().aeth.value, static_cast<int>(NakCode::kInvalidRequest));
}

TEST_F(Fetch, AnAnswerOfTheWrongKindOrLengthFailsTheConnection) {
  const auto status = [](auto change) {
    TwoHosts hosts({.mtu = 256});
    hosts.a.read(1, kResult, 300, hosts.b, 0);
    hosts.b.deliver(hosts.a.transmit_all());
    hosts.a.deliver(with_headers(*hosts.b.transmit(), change));
    return hosts.a.statuses();
  };
  EXPECT_THAT(status([](auto& h) { h.bth.pad_count = 1; }), ElementsAre(WcStatus::kBadResponse));
  EXPECT_THAT(status([](auto& h) { h.bth.opcode = Opcode::kRcAtomicAcknowledge; }),
              ElementsAre(WcStatus::kBadResponse));
}

TEST_F(Fetch, ImpossibleRequestsAreRefusedWhenPosted) {
  const Sge small = a_.piece(0, 4), large = a_.piece(0, 9);
  const auto code = [&](Host& host, const SendWr& wr) { return host.post(wr).error().code; };
  SendWr wr;
  wr.sges = {&small, 1};
  wr.op = SendOp::kFetchAdd;
  EXPECT_EQ(code(a_, wr), wire::ErrorCode::kInvalid) << "no space for the old value";
  wr.sges = {&large, 1};
  EXPECT_EQ(code(a_, wr), wire::ErrorCode::kInvalid) << "more than the old value";
  wr.op = SendOp::kRead;
  wr.inline_data = true;
  EXPECT_EQ(code(a_, wr), wire::ErrorCode::kInvalid) << "inline";
  TwoHosts none({.max_rd_atomic = 0});
  wr.inline_data = false;
  EXPECT_EQ(code(none.a, wr), wire::ErrorCode::kInvalid) << "max_rd_atomic is 0";
}

// As rdma_rxe and mlx5: the sender has delivered its message, and learns nothing.
TEST_F(Fetch, NoKeyCanBeRevokedByASend) {
  b_.receive(7, 0, 100);
  SendWr wr{.wr_id = 1, .op = SendOp::kSendInvalidate, .signaled = true, .sges = {}};
  wr.invalidate_rkey = b_.keys.rkey;
  ASSERT_TRUE(a_.post(wr));
  hosts_.exchange();
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess));
  EXPECT_THAT(b_.statuses(), ElementsAre(WcStatus::kRemoteInvalidRequest));
  EXPECT_EQ(b_.count(Counter::kTxNakFatal), 0u);
  EXPECT_EQ(b_.state(), QpState::kErr);
}

// The READ before it was executed, so it gets its result, or the error of its memory, once.
TEST_F(Fetch, ASendThatRevokesNoKeyLeavesTheReadBeforeIt) {
  for (const bool is_lost : {false, true}) {
    TwoHosts hosts({.mtu = 256});
    Host &a = hosts.a, &b = hosts.b;
    b.receive(7, 0, 100);
    a.read(1, kResult, 600, b, 0);
    SendWr wr{.wr_id = 2, .op = SendOp::kSendInvalidate, .signaled = true, .sges = {}};
    ASSERT_TRUE(a.post(wr));
    b.deliver(a.transmit_all());
    ASSERT_EQ(b.state(), QpState::kErr);
    ASSERT_TRUE(!is_lost || b.nic.deregister_memory(b.keys.lkey));
    hosts.exchange();
    EXPECT_THAT(a.statuses(), is_lost ? ElementsAre(WcStatus::kRemoteAccess, WcStatus::kFlush)
                                      : ElementsAre(WcStatus::kSuccess, WcStatus::kSuccess));
    EXPECT_THAT(b.events, IsEmpty());
  }
}

TEST_F(Fetch, ALongReadGoesInPiecesOfHalfAWindow) {
  TwoHosts hosts({.mtu = 256, .max_rd_atomic = 2}, {.window_packets = 8});
  fill_pattern(hosts.b.memory, 3);
  hosts.a.read(1, kResult, 256 * 10, hosts.b, 0);
  const auto requests = hosts.a.transmit_all();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].headers().reth.dma_length, 1024u);
  EXPECT_EQ(requests[1].psn(), 104u);
  hosts.b.deliver(requests);
  hosts.a.deliver(hosts.b.transmit_all());
  hosts.run_until_idle();
  EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kSuccess));
  EXPECT_TRUE(std::equal(hosts.b.memory.begin(), hosts.b.memory.begin() + 2560,
                         hosts.a.memory.begin() + kResult));
}

}  // namespace
}  // namespace cepheus::rnic::testing
