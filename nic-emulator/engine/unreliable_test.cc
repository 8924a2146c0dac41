// Unreliable connections deliver whole messages or nothing; datagrams name their sender.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Opcode;

constexpr std::size_t kInbox = 0x40000;

class Unreliable : public ::testing::Test, protected BetweenHosts {
 protected:
  explicit Unreliable(const QpOptions& options) : BetweenHosts(options) {}

  bool arrived(std::size_t from, std::size_t to, std::size_t length) const {
    return std::equal(a_.memory.begin() + static_cast<long>(from),
                      a_.memory.begin() + static_cast<long>(from + length),
                      b_.memory.begin() + static_cast<long>(to));
  }
};

class UnreliableConnection : public Unreliable {
 protected:
  UnreliableConnection() : Unreliable({.type = QpType::kUc, .mtu = 256}) {}
};

TEST_F(UnreliableConnection, CompletesSentMessagesAndAnswersNone) {
  b_.receive(7, kInbox, 1000);
  a_.send(1, 0, 600);
  a_.write(2, 0, 300, b_, 0x50000);
  const auto packets = a_.transmit_all();
  ASSERT_EQ(packets.size(), 5u);
  EXPECT_EQ(packets[0].opcode(), Opcode::kUcSendFirst);
  EXPECT_EQ(packets[4].opcode(), Opcode::kUcWriteLast);
  EXPECT_THAT(a_.ids(), ElementsAre(1, 2));
  b_.deliver(packets);
  EXPECT_THAT(b_.ids(), ElementsAre(7));
  EXPECT_EQ(b_.completions[0].byte_len, 600u);
  EXPECT_TRUE(arrived(0, kInbox, 600));
  EXPECT_TRUE(arrived(0, 0x50000, 300));
  EXPECT_THAT(b_.transmit_all(), IsEmpty());
  EXPECT_EQ(a_.nic.deadline(), wire::kNever);
}

TEST_F(UnreliableConnection, DropsAWholeMessageOnAGapAndKeepsItsReceiveForTheNext) {
  for (std::size_t lost = 0; lost < 3; ++lost) {
    TwoHosts hosts({.type = QpType::kUc, .mtu = 256});
    hosts.b.receive(7, kInbox, 1000);
    hosts.a.send(1, 0, 600);
    hosts.a.send(2, 1000, 700);
    auto packets = hosts.a.transmit_all();
    packets.erase(packets.begin() + static_cast<long>(lost));
    hosts.b.deliver(packets);
    ASSERT_EQ(hosts.b.completions.size(), 1u) << lost;
    EXPECT_EQ(hosts.b.completions[0].byte_len, 700u);
    EXPECT_TRUE(std::equal(hosts.a.memory.begin() + 1000, hosts.a.memory.begin() + 1700,
                           hosts.b.memory.begin() + kInbox));
    EXPECT_GE(hosts.b.count(Counter::kRxDropIncomplete), 1u);
    EXPECT_EQ(hosts.b.count(Counter::kRxOutOfSequence), 1u);
  }
}

TEST_F(UnreliableConnection, ForgetsAMessageUnderWayWhenItIsReset) {
  b_.receive(1, kInbox, 1000);
  a_.send(1, 0, 600);
  b_.deliver(a_.transmit_all()[0]);
  ASSERT_TRUE(b_.to(QpState::kReset));
  ASSERT_TRUE(b_.to_init(hosts_.options));
  ASSERT_TRUE(b_.to_rtr(hosts_.options, a_, Psn(103)));
  b_.receive(2, kInbox, 1000);
  a_.send(2, 0, 600);
  hosts_.exchange();
  EXPECT_THAT(b_.ids(), ElementsAre(2));
  EXPECT_EQ(b_.count(Counter::kRxDropIncomplete), 0u);
  EXPECT_EQ(b_.count(Counter::kRxOutOfSequence), 0u);
}

TEST_F(UnreliableConnection, GivesImmediates) {
  b_.receive(7, kInbox, 100);
  const Sge sge = a_.piece(0, 40);
  SendWr wr{.op = SendOp::kWriteImm, .imm = 0xABCD, .sges = {&sge, 1}};
  wr.remote_address = b_.piece(0x50000, 0).address;
  wr.rkey = b_.keys.rkey;
  ASSERT_TRUE(a_.post(wr));
  hosts_.exchange();
  ASSERT_EQ(b_.completions.size(), 1u);
  EXPECT_EQ(b_.completions[0].opcode, WcOpcode::kRecvWriteImm);
  EXPECT_EQ(b_.completions[0].imm, 0xABCDu);
  EXPECT_THAT(a_.completions, IsEmpty()) << "not signalled";
}

TEST_F(UnreliableConnection, DropsUnusablePacketsByNamedReason) {
  a_.send(1, 0, 300);
  hosts_.exchange();
  EXPECT_EQ(b_.count(Counter::kRxDropNoReceive), 1u);
  EXPECT_EQ(b_.count(Counter::kRxDropIncomplete), 1u) << "its second packet";
  b_.receive(7, kInbox, 299);
  a_.send(2, 0, 300);
  hosts_.exchange();
  EXPECT_EQ(b_.count(Counter::kRxDropLength), 1u);
  a_.write(3, 0, 10, b_, 0);
  b_.deliver(with_headers(*a_.transmit(), [](auto& h) { h.reth.rkey ^= 1; }));
  EXPECT_EQ(b_.count(Counter::kRxDropAccess), 1u);
  a_.write(4, 0, 10, b_, 0);
  b_.deliver(with_headers(*a_.transmit(), [](auto& h) { h.reth.dma_length = 11; }));
  EXPECT_EQ(b_.count(Counter::kRxDropLength), 2u);
  b_.deliver(with_headers(
      [&] {
        a_.send(5, 0, 10);
        return *a_.transmit();
      }(),
      [](auto& h) { h.bth.opcode = Opcode::kRcSendOnly; }));
  EXPECT_EQ(b_.count(Counter::kRxDropUnsupported), 1u);
  EXPECT_THAT(b_.completions, IsEmpty());
  EXPECT_EQ(b_.state(), QpState::kRts);
}

TEST_F(UnreliableConnection, AReceiveThatCannotBeWrittenFailsIt) {
  b_.receive(7, kInbox, 100);
  b_.receive(8, kInbox, 100);
  ASSERT_TRUE(b_.nic.deregister_memory(b_.keys.lkey));
  a_.send(1, 0, 10);
  hosts_.exchange();
  EXPECT_THAT(b_.statuses(), ElementsAre(WcStatus::kLocalProtection, WcStatus::kFlush));
  EXPECT_EQ(b_.state(), QpState::kErr);
}

TEST_F(UnreliableConnection, ASendThatCannotBeReadStopsTheSendQueueAlone) {
  ASSERT_TRUE(a_.nic.deregister_memory(a_.keys.lkey));
  a_.send(1, 0, 10);
  a_.send(2, 0, 10);
  EXPECT_THAT(a_.transmit_all(), IsEmpty());
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kLocalProtection, WcStatus::kFlush));
  EXPECT_EQ(a_.state(), QpState::kSqe);
  a_.send(3, 0, 10);
  EXPECT_EQ(a_.statuses().back(), WcStatus::kFlush);
  ASSERT_TRUE(a_.to(QpState::kRts));
  ASSERT_TRUE(a_.post(SendWr{.wr_id = 4, .signaled = true, .sges = {}}));
  EXPECT_EQ(a_.transmit_all().size(), 1u);
  EXPECT_EQ(a_.completions.back().status, WcStatus::kSuccess);
}

TEST_F(UnreliableConnection, EndsTheMessageAtHandWhenDrained) {
  a_.send(1, 0, 600);
  a_.send(2, 0, 600);
  (void)a_.transmit();
  ASSERT_TRUE(a_.to_drained());
  EXPECT_THAT(a_.events, IsEmpty());
  EXPECT_EQ(a_.transmit_all().size(), 2u);
  ASSERT_EQ(a_.events.size(), 1u);
  EXPECT_EQ(a_.events[0].kind, AsyncEventKind::kSqDrained);
  ASSERT_TRUE(a_.to(QpState::kRts));
  EXPECT_EQ(a_.transmit_all().size(), 3u);
}

// As on ConnectX, and as a send from unreadable memory.
TEST_F(UnreliableConnection, FailsOperationsOfRcOnlyInTheirTurn) {
  for (const SendOp op : {SendOp::kSendInvalidate, SendOp::kRead, SendOp::kFetchAdd}) {
    TwoHosts hosts({.type = QpType::kUc});
    ASSERT_TRUE(hosts.a.post(SendWr{.wr_id = 1, .op = op, .sges = {}}));
    hosts.a.send(2, 0, 10);
    EXPECT_EQ(hosts.a.transmit_all().size(), 0u);
    EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kLocalQpOperation, WcStatus::kFlush));
    EXPECT_EQ(hosts.a.state(), QpState::kSqe);
  }
}

// Inline data may come in any number of pieces.
TEST_F(UnreliableConnection, FailsARequestOfManyPiecesInItsTurn) {
  const std::vector<Sge> pieces(hosts_.options.cap.max_send_sge + 1, a_.piece(0, 1));
  ASSERT_TRUE(a_.post(SendWr{.op = SendOp::kRead, .inline_data = true, .sges = pieces}));
  EXPECT_EQ(a_.transmit_all().size(), 0u);
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kLocalQpOperation));
}

class Datagram : public Unreliable {
 protected:
  Datagram() : Unreliable({.type = QpType::kUd, .qkey = 0x1111}) {}
};

TEST_F(Datagram, HasItsSenderAndTheNetworkHeader) {
  b_.receive(7, kInbox, 1000);
  a_.datagram(1, 0, 100, b_, 0x1111);
  const Packet packet = *a_.transmit();
  EXPECT_EQ(packet.opcode(), Opcode::kUdSendOnly);
  EXPECT_THAT(a_.ids(), ElementsAre(1));
  b_.deliver(packet);
  ASSERT_EQ(b_.completions.size(), 1u);
  const Completion& c = b_.completions[0];
  EXPECT_TRUE(c.has_grh);
  EXPECT_EQ(c.byte_len, 140u);
  EXPECT_EQ(c.source_qpn, a_.qpn);
  EXPECT_TRUE(arrived(0, kInbox + kGrhBytes, 100));
  // The last 20 of the 40 bytes are the packet's own IPv4 header; parse checks its checksum.
  const auto header = std::span(b_.memory).subspan(kInbox + 20, 20);
  EXPECT_TRUE(std::ranges::equal(header, std::span(packet.bytes).subspan(14, 20)));
  const auto ip = wire::Ipv4Header::parse(header);
  ASSERT_TRUE(ip);
  EXPECT_EQ(ip->source, a_.nic.config().address);
  EXPECT_THAT(std::span(b_.memory).subspan(kInbox, 20), ::testing::Each(0));
  EXPECT_THAT(b_.transmit_all(), IsEmpty());
}

TEST_F(Datagram, GivesImmediatesAndSolicitation) {
  b_.receive(7, kInbox, 1000);
  SendWr wr{.op = SendOp::kSendImm, .solicited = true, .imm = 99, .sges = {}};
  wr.destination = {b_.nic.config().address, 8, 3};
  wr.remote_qpn = b_.qpn;
  wr.qkey = 0x80000000;  // the QP's own
  ASSERT_TRUE(a_.post(wr));
  const Packet packet = *a_.transmit();
  EXPECT_EQ(packet.headers().ip.tos, 8);
  EXPECT_EQ(packet.headers().ip.ttl, 3);
  b_.deliver(packet);
  ASSERT_EQ(b_.completions.size(), 1u);
  EXPECT_TRUE(b_.completions[0].solicited);
  EXPECT_EQ(b_.completions[0].imm, 99u);
  EXPECT_EQ(b_.completions[0].byte_len, 40u);
}

TEST_F(Datagram, CarriesKeyZeroIfItsRequestNamesNone) {
  SendWr wr{.sges = {}};
  wr.destination.ip = b_.nic.config().address;
  wr.remote_qpn = b_.qpn;
  ASSERT_TRUE(a_.post(wr));
  EXPECT_EQ(a_.transmit()->headers().deth.qkey, 0u);
}

TEST_F(Datagram, DropsUnusablePacketsByNamedReason) {
  a_.datagram(1, 0, 10, b_, 0x1111);
  hosts_.exchange();
  EXPECT_EQ(b_.count(Counter::kRxDropNoReceive), 1u);
  b_.receive(7, kInbox, 49);
  a_.datagram(2, 0, 10, b_, 0x1111);
  hosts_.exchange();
  EXPECT_EQ(b_.count(Counter::kRxDropLength), 1u);
  a_.datagram(3, 0, 9, b_, 0x2222);
  hosts_.exchange();
  EXPECT_EQ(b_.count(Counter::kRxDropQkey), 1u);
  EXPECT_THAT(b_.completions, IsEmpty());
  a_.datagram(4, 0, 9, b_, 0x1111);
  hosts_.exchange();
  EXPECT_THAT(b_.ids(), ElementsAre(7)) << "the receive was kept";
}

TEST_F(Datagram, FitsTheMtuAndHasAnAddress) {
  EXPECT_EQ(a_.post(SendWr{}).error().code, wire::ErrorCode::kInvalid);
  a_.datagram(1, 0, 4096, b_, 0x1111);
  b_.receive(7, kInbox, 5000);
  hosts_.exchange();
  EXPECT_TRUE(arrived(0, kInbox + kGrhBytes, 4096));

  const Sge sge = a_.piece(0, 4097);
  SendWr wr{.wr_id = 2, .sges = {&sge, 1}};
  wr.destination.ip = b_.nic.config().address;
  ASSERT_TRUE(a_.post(wr));
  EXPECT_TRUE(a_.transmit_all().empty());
  EXPECT_THAT(a_.statuses(), ElementsAre(WcStatus::kSuccess, WcStatus::kLocalLength));
  EXPECT_EQ(a_.state(), QpState::kSqe);
}

TEST_F(Datagram, ComesFromAnyHostThatKnowsTheKey) {
  b_.receive(7, kInbox, 100);
  a_.datagram(1, 0, 10, b_, 0x1111);
  b_.deliver(with_headers(*a_.transmit(), [](auto& h) { h.ip.source = Ipv4(10, 0, 0, 77); }));
  EXPECT_THAT(b_.ids(), ElementsAre(7));
}

TEST(DatagramState, NeedsAQueueKeyAndNoAddress) {
  TwoHosts hosts({.type = QpType::kUd});
  ASSERT_TRUE(hosts.a.to(QpState::kReset));
  QpAttr attr;
  attr.state = QpState::kInit;
  EXPECT_FALSE(hosts.a.modify(attr, kAttrState)) << "no queue key";
  EXPECT_FALSE(hosts.a.modify(attr, kAttrState | kAttrQkey | kAttrAddress));
  EXPECT_TRUE(hosts.a.modify(attr, kAttrState | kAttrQkey));
  EXPECT_TRUE(hosts.a.to(QpState::kRtr));
}

}  // namespace
}  // namespace cepheus::rnic::testing
