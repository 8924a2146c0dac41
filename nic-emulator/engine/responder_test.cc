// The responder against gaps, duplicates, missing receives and requests it must refuse.
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
using wire::Aeth;
using wire::NakCode;
using wire::Opcode;

constexpr Aeth nak(NakCode code, std::uint32_t msn) {
  return {AckKind::kNak, static_cast<std::uint8_t>(code), msn};
}

// Host b's answers to requests that host a has made.
class Responder : public ::testing::Test, protected BetweenHosts {
 protected:
  Responder() : BetweenHosts({.mtu = 256}) {}

  // The one answer that host b has to give.
  Packet answer() {
    const auto packets = b_.transmit_all();
    EXPECT_EQ(packets.size(), 1u);
    return packets.at(0);
  }
  void expect_refusal(NakCode code, std::uint32_t psn) {
    const Packet p = answer();
    EXPECT_EQ(p.psn(), psn);
    EXPECT_EQ(p.headers().aeth.kind, AckKind::kNak);
    EXPECT_EQ(p.headers().aeth.value, static_cast<std::uint8_t>(code));
    EXPECT_EQ(b_.state(), QpState::kErr);
    EXPECT_EQ(b_.count(Counter::kTxNakFatal), 1u);
  }
  std::vector<Packet> send_packets(std::uint32_t length) {
    a_.send(1, 0, length);
    return a_.transmit_all();
  }
  std::vector<Packet> write_packets(std::uint32_t length, std::size_t to_offset = 0) {
    a_.write(1, 0, length, b_, to_offset);
    return a_.transmit_all();
  }
};

TEST_F(Responder, NaksOncePerGap) {
  b_.receive(1, 0, 256 * 6);
  const auto p = send_packets(256 * 6);
  b_.deliver(p[0]);
  b_.deliver(p[2]);
  EXPECT_EQ(answer().headers().aeth, nak(NakCode::kSequenceError, 0));
  b_.deliver(p[3]);
  b_.deliver(p[4]);
  EXPECT_THAT(b_.transmit_all(), IsEmpty());
  b_.deliver(p[1]);
  b_.deliver(p[4]);
  const Packet second = answer();
  EXPECT_EQ(second.psn(), 102u);
  EXPECT_EQ(second.headers().aeth, nak(NakCode::kSequenceError, 0));
  b_.deliver({p[2], p[3], p[4], p[5]});
  EXPECT_EQ(answer().headers().aeth, (Aeth{AckKind::kAck, 31, 1}));
  EXPECT_THAT(b_.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST_F(Responder, TakesBackANakThatTheMissingPacketOvertook) {
  b_.receive(1, 0, 256 * 3);
  const auto p = send_packets(256 * 3);
  b_.deliver({p[0], p[2], p[1]});
  const Packet ack = answer();
  EXPECT_EQ(ack.headers().aeth.kind, AckKind::kAck);
  EXPECT_EQ(ack.psn(), 101u);
}

TEST_F(Responder, AnswersDuplicatesWithTheNewestAck) {
  b_.receive(1, 0, 256 * 4);
  const auto p = send_packets(256 * 4);
  b_.deliver({p[0], p[1], p[2]});
  EXPECT_THAT(b_.transmit_all(), IsEmpty()) << "without AckReq";
  b_.deliver({p[0], p[1]});
  EXPECT_EQ(answer().psn(), 102u);
  EXPECT_EQ(b_.count(Counter::kRxDuplicate), 2u);
  EXPECT_EQ(b_.count(Counter::kTxAck), 1u);
}

TEST_F(Responder, AnswersADuplicateBeforeAnyRequestWithStartMinusOne) {
  const auto p = send_packets(10);
  b_.deliver(with_headers(p[0], [](auto& h) { h.bth.psn = Psn(57); }));
  const Packet ack = answer();
  EXPECT_EQ(ack.psn(), 99u);
  EXPECT_EQ(ack.headers().aeth, (Aeth{AckKind::kAck, 31, 0}));
  a_.deliver(ack);
  EXPECT_EQ(a_.count(Counter::kRxDropStaleAck), 1u);
}

TEST_F(Responder, StartsAtTheNewPsnAfterReset) {
  b_.receive(1, 0, 256);
  const auto p = send_packets(256);
  b_.deliver(p);
  ASSERT_TRUE(b_.to(QpState::kReset));
  EXPECT_THAT(b_.transmit_all(), IsEmpty()) << "the ACK that was owed is gone";
  ASSERT_TRUE(b_.to_init(hosts_.options));
  ASSERT_TRUE(b_.to_rtr(hosts_.options, a_, Psn(4000)));
  b_.deliver(with_headers(p[0], [](auto& h) { h.bth.psn = Psn(3999); }));
  EXPECT_EQ(answer().psn(), 3999u);
}

TEST_F(Responder, MissingReceiveDrawsOneRnrNakAndSilence) {
  const auto p = send_packets(256 * 4);
  b_.deliver(p);
  const Packet rnr = answer();
  EXPECT_EQ(rnr.psn(), 100u);
  EXPECT_EQ(rnr.headers().aeth, (Aeth{AckKind::kRnrNak, 12, 0}));
  EXPECT_EQ(b_.count(Counter::kTxRnrNak), 1u);
  b_.deliver(p);
  EXPECT_EQ(answer().headers().aeth.kind, AckKind::kRnrNak) << "the packet itself came again";
  b_.receive(1, 0, 1024);
  b_.deliver(p);
  EXPECT_EQ(answer().headers().aeth, (Aeth{AckKind::kAck, 31, 1}));
  EXPECT_THAT(b_.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST_F(Responder, WriteWithImmediateNeedsItsReceiveAtTheEnd) {
  const Sge sge = a_.piece(0, 600);
  SendWr wr{.wr_id = 1, .op = SendOp::kWriteImm, .imm = 77, .sges = {&sge, 1}};
  wr.remote_address = b_.piece(0, 0).address;
  wr.rkey = b_.keys.rkey;
  ASSERT_TRUE(a_.post(wr));
  const auto p = a_.transmit_all();
  b_.deliver(p);
  const Packet rnr = answer();
  EXPECT_EQ(rnr.psn(), 102u);
  EXPECT_EQ(rnr.headers().aeth.kind, AckKind::kRnrNak);
  b_.receive(5, 0, 0);
  b_.deliver(p[2]);
  ASSERT_EQ(b_.completions.size(), 1u);
  EXPECT_EQ(b_.completions[0].byte_len, 600u);
  EXPECT_EQ(b_.completions[0].imm, 77u);
  EXPECT_TRUE(std::equal(a_.memory.begin(), a_.memory.begin() + 600, b_.memory.begin()));
}

TEST_F(Responder, CountsMessagesInTheAeth) {
  for (std::uint32_t i = 1; i <= 5; ++i) {
    b_.receive(i, 0, 600);
    b_.deliver(send_packets(600));
    EXPECT_EQ(answer().headers().aeth.msn, i);
  }
}

TEST_F(Responder, RefusesAMessageLongerThanItsReceive) {
  b_.receive(1, 0, 500);
  b_.receive(2, 0, 500);
  b_.deliver(send_packets(501));
  expect_refusal(NakCode::kInvalidRequest, 101);
  EXPECT_THAT(b_.ids(), ElementsAre(1, 2));
  EXPECT_THAT(b_.statuses(), ElementsAre(WcStatus::kLocalLength, WcStatus::kFlush));
  EXPECT_THAT(b_.events, IsEmpty()) << "the completion reports it";
}

TEST_F(Responder, RefusesAMessageThatItsOwnReceiveCannotHold) {
  Sge foreign = b_.piece(0, 256);
  foreign.lkey += 1;
  ASSERT_TRUE(b_.post(RecvWr{.wr_id = 1, .sges = {&foreign, 1}}));
  b_.deliver(send_packets(100));
  expect_refusal(NakCode::kRemoteOperational, 100);
  EXPECT_THAT(b_.statuses(), ElementsAre(WcStatus::kLocalProtection));
}

TEST_F(Responder, ReadOnlyMemoryTakesNoReceive) {
  std::vector<std::uint8_t> text(256);
  const auto keys = b_.nic.register_memory(Host::kPd, text.data(), text.size(), 0, 0);
  const Sge sge{0, 256, keys->lkey};
  ASSERT_TRUE(b_.post(RecvWr{.wr_id = 1, .sges = {&sge, 1}}));
  b_.deliver(send_packets(100));
  expect_refusal(NakCode::kRemoteOperational, 100);
}

TEST_F(Responder, RefusesAWriteWithAWrongKey) {
  const auto p = write_packets(100);
  b_.deliver(with_headers(p[0], [](auto& h) { h.reth.rkey ^= 0x40000000; }));
  expect_refusal(NakCode::kRemoteAccess, 100);
  ASSERT_EQ(b_.events.size(), 1u);
  EXPECT_EQ(b_.events[0].kind, AsyncEventKind::kQpAccessError);
}

TEST_F(Responder, RefusesAWriteThatEndsOutsideTheRegionBeforeItsFirstByte) {
  a_.write(1, 0, 257, b_, Host::kMemory - 256);
  b_.memory.assign(b_.memory.size(), 0xEE);
  b_.deliver(a_.transmit_all());
  expect_refusal(NakCode::kRemoteAccess, 100);
  EXPECT_EQ(std::ranges::count(b_.memory, 0xEE), Host::kMemory);
}

TEST_F(Responder, RefusesAWriteToARegionOfAnotherDomainOrWithoutTheRight) {
  const std::pair<PdId, std::uint32_t> regions[] = {{Host::kPd + 1, kLocalWrite | kRemoteWrite},
                                                    {Host::kPd, kLocalWrite}};
  for (const auto& [pd, access] : regions) {
    TwoHosts hosts;
    std::vector<std::uint8_t> bytes(256, 0xEE);
    const auto keys = hosts.b.nic.register_memory(pd, bytes.data(), bytes.size(), 0, access);
    hosts.a.write(1, 0, 100, hosts.b, 0);
    hosts.b.deliver(with_headers(*hosts.a.transmit(), [&](auto& h) {
      h.reth.rkey = keys->rkey;
      h.reth.virtual_address = 0;
    }));
    const auto answers = hosts.b.transmit_all();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].headers().aeth, nak(NakCode::kRemoteAccess, 0));
    EXPECT_THAT(bytes, Each(0xEE));
  }
}

TEST_F(Responder, OwesAnAnswerUntilItIsSent) {
  EXPECT_FALSE(b_.nic.owes_answers());
  b_.deliver(write_packets(100));
  EXPECT_TRUE(b_.nic.owes_answers());
  answer();
  EXPECT_FALSE(b_.nic.owes_answers());
}

// The last bytes are stored apart from the others.
TEST_F(Responder, StoresWritesOfEveryShortLengthWholly) {
  fill_pattern(a_.memory, 1);
  for (std::uint32_t length = 1; length <= 17; ++length) {
    const std::size_t to = 64 * length + length % 3;
    const auto before = b_.memory;
    b_.deliver(write_packets(length, to));
    a_.deliver(b_.transmit_all());
    auto expected = before;
    std::copy_n(a_.memory.begin(), length, expected.begin() + static_cast<std::ptrdiff_t>(to));
    EXPECT_EQ(b_.memory, expected) << "length " << length;
  }
}

TEST_F(Responder, RefusesAWriteWhenTheQueuePairDoesNotAllowIt) {
  QpAttr attr;
  attr.access = kLocalWrite;
  ASSERT_TRUE(b_.modify(attr, kAttrAccess));
  b_.deliver(write_packets(100));
  expect_refusal(NakCode::kInvalidRequest, 100);
  ASSERT_EQ(b_.events.size(), 1u);
  EXPECT_EQ(b_.events[0].kind, AsyncEventKind::kQpRequestError);
}

TEST_F(Responder, NoticesARegionThatGoesAwayUnderWay) {
  const auto p = write_packets(256 * 3);
  b_.deliver(p[0]);
  ASSERT_TRUE(b_.nic.deregister_memory(b_.keys.rkey));
  b_.deliver(p[1]);
  expect_refusal(NakCode::kRemoteAccess, 101);
}

TEST_F(Responder, RefusesLengthsThatDoNotAddUp) {
  const auto refused = [](std::uint32_t length, std::size_t packet, auto change) {
    TwoHosts hosts({.mtu = 256});
    hosts.a.write(1, 0, length, hosts.b, 0);
    auto p = hosts.a.transmit_all();
    p[packet] = with_headers(p[packet], change);
    hosts.b.deliver(p);
    const auto answers = hosts.b.transmit_all();
    return answers.size() == 1 && answers[0].headers().aeth.kind == AckKind::kNak &&
           answers[0].headers().aeth.value == 1 && answers[0].psn() == 100 + packet;
  };
  EXPECT_TRUE(refused(256, 0, [](auto& h) { h.reth.dma_length = 255; })) << "more than announced";
  EXPECT_TRUE(refused(256, 0, [](auto& h) { h.reth.dma_length = 257; })) << "less than announced";
  EXPECT_TRUE(refused(256, 0, [](auto& h) { h.reth.dma_length = 0x80000001; })) << "above 2^31";
  EXPECT_FALSE(refused(256, 0, [](auto& h) { h.reth.dma_length = 0x80000000; }))
      << "not for its length: the region is smaller";
  EXPECT_TRUE(refused(600, 1, [](auto& h) { h.bth.pad_count = 1; })) << "short middle";
  EXPECT_TRUE(refused(600, 2, [](auto& h) { h.bth.opcode = Opcode::kRcWriteMiddle; }));
  EXPECT_TRUE(refused(600, 2, [](auto& h) { h.bth.opcode = Opcode::kRcSendLast; }));
  EXPECT_TRUE(refused(600, 1, [](auto& h) { h.bth.opcode = Opcode::kRcSendFirst; }));
  EXPECT_TRUE(refused(100, 0, [](auto& h) { h.bth.opcode = Opcode::kRcWriteLast; }));
}

TEST_F(Responder, RefusesAWritesPacketThatLeavesNothingForTheLast) {
  auto p = write_packets(600);
  p[0] = with_headers(p[0], [](auto& h) { h.reth.dma_length = 512; });
  b_.deliver({p[0], p[1]});
  expect_refusal(NakCode::kInvalidRequest, 101);
}

TEST_F(Responder, RefusesAnEmptyLastPacket) {
  b_.receive(1, 0, 512);
  const Packet first = send_packets(512)[0];
  const Packet empty = send_packets(0)[0];
  b_.deliver(first);
  b_.deliver(with_headers(empty, [](auto& h) {
    h.bth.opcode = Opcode::kRcSendLast;
    h.bth.psn = Psn(101);
  }));
  expect_refusal(NakCode::kInvalidRequest, 101);
}

TEST_F(Responder, RefusesReadsAndAtomicsThatTheQpDoesNotAllow) {
  for (const Opcode opcode :
       {Opcode::kRcReadRequest, Opcode::kRcCompareSwap, Opcode::kRcFetchAdd}) {
    TwoHosts hosts({.access = kLocalWrite | kRemoteWrite});
    hosts.b.receive(1, 0, 100);
    hosts.a.send(1, 0, 0);
    hosts.b.deliver(
        with_headers(hosts.a.transmit_all()[0], [&](auto& h) { h.bth.opcode = opcode; }));
    const auto answers = hosts.b.transmit_all();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].headers().aeth, nak(NakCode::kInvalidRequest, 0));
  }
}

TEST_F(Responder, DropsForeignPacketsByNamedReason) {
  b_.receive(1, 0, 256);
  const Packet good = send_packets(100)[0];
  const auto deliver = [&](auto change) { b_.deliver(with_headers(good, change)); };
  deliver([](auto& h) { h.ip.source = Ipv4(10, 0, 0, 9); });
  EXPECT_EQ(b_.count(Counter::kRxDropWrongSource), 1u);
  deliver([](auto& h) { h.ip.destination = Ipv4(10, 0, 0, 9); });
  EXPECT_EQ(b_.count(Counter::kRxDropNotMine), 1u);
  deliver([](auto& h) { h.bth.pkey = 0x1234; });
  EXPECT_EQ(b_.count(Counter::kRxDropPkey), 1u);
  deliver([](auto& h) { h.bth.destination_qp = Qpn(1); });
  EXPECT_EQ(b_.count(Counter::kRxDropUnknownQp), 1u);
  deliver([](auto& h) { h.bth.transport_version = 1; });
  EXPECT_EQ(b_.count(Counter::kRxDropMalformed), 1u);
  deliver([](auto& h) { h.bth.opcode = Opcode::kUcSendOnly; });
  EXPECT_EQ(b_.count(Counter::kRxDropUnsupported), 1u);
  Packet damaged = good;
  damaged.bytes[60] ^= 1;
  b_.deliver(damaged);
  EXPECT_EQ(b_.count(Counter::kRxDropIcrc), 1u);
  EXPECT_THAT(b_.completions, IsEmpty());
  EXPECT_THAT(b_.transmit_all(), IsEmpty());

  deliver([](auto& h) { h.bth.pkey = 0x7FFF; });  // limited membership is enough
  EXPECT_EQ(b_.completions.size(), 1u);
  ASSERT_TRUE(b_.to(QpState::kErr));
  b_.deliver(good);
  EXPECT_EQ(b_.count(Counter::kRxDropQpState), 1u);
  EXPECT_EQ(b_.count(Counter::kRxPackets), 9u);
}

TEST_F(Responder, RefusedReceivesNameTheirLimit) {
  const std::vector<Sge> five(5, b_.piece(0, 1));
  EXPECT_EQ(b_.post(RecvWr{.sges = five}).error().code, wire::ErrorCode::kInvalid);
  for (int i = 0; i < 64; ++i) b_.receive(1, 0, 1);
  EXPECT_EQ(b_.post(RecvWr{}).error().code, wire::ErrorCode::kAgain);
}

}  // namespace
}  // namespace cepheus::rnic::testing
