// Two connected queue pairs without any fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "nic-emulator/engine/nic_testing.h"

namespace cepheus::rnic::testing {
namespace {

using ::testing::ElementsAre;
using wire::Opcode;

std::span<const std::uint8_t> part(const Host& host, std::size_t offset, std::size_t length) {
  return std::span(host.memory).subspan(offset, length);
}
void expect_same(const Host& a, std::size_t from, const Host& b, std::size_t to, std::size_t n) {
  const auto x = part(a, from, n);
  const auto y = part(b, to, n);
  EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end()));
}

TEST(Connection, SendOfOnePacketArrivesAndCompletesOnBothSides) {
  TwoHosts hosts;
  hosts.b.receive(7, 4096, 512);
  hosts.a.send(5, 0, 300);

  const auto request = hosts.a.transmit_all();
  ASSERT_EQ(request.size(), 1u);
  EXPECT_EQ(request[0].opcode(), Opcode::kRcSendOnly);
  EXPECT_EQ(request[0].psn(), 100u);
  EXPECT_TRUE(request[0].requests_ack());
  hosts.b.deliver(request);
  ASSERT_EQ(hosts.b.completions.size(), 1u);
  const Completion& received = hosts.b.completions[0];
  EXPECT_EQ(received.wr_id, 7u);
  EXPECT_EQ(received.status, WcStatus::kSuccess);
  EXPECT_EQ(received.opcode, WcOpcode::kRecv);
  EXPECT_EQ(received.byte_len, 300u);
  EXPECT_EQ(received.cq, Host::kRecvCq);
  EXPECT_EQ(received.qpn, hosts.b.qpn);
  EXPECT_FALSE(received.has_imm);
  EXPECT_EQ(received.imm, 0u);
  expect_same(hosts.a, 0, hosts.b, 4096, 300);

  EXPECT_TRUE(hosts.a.completions.empty()) << "not before it is acknowledged";
  const auto ack = hosts.b.transmit_all();
  ASSERT_EQ(ack.size(), 1u);
  EXPECT_EQ(ack[0].opcode(), Opcode::kRcAcknowledge);
  EXPECT_EQ(ack[0].psn(), 100u);
  EXPECT_EQ(ack[0].headers().aeth, (wire::Aeth{wire::AckKind::kAck, 31, 1}));
  hosts.a.deliver(ack);
  ASSERT_EQ(hosts.a.completions.size(), 1u);
  EXPECT_EQ(hosts.a.completions[0].wr_id, 5u);
  EXPECT_EQ(hosts.a.completions[0].status, WcStatus::kSuccess);
  EXPECT_EQ(hosts.a.completions[0].opcode, WcOpcode::kSend);
  EXPECT_EQ(hosts.a.completions[0].cq, Host::kSendCq);
  EXPECT_EQ(hosts.a.nic.deadline(), wire::kNever);
}

TEST(Connection, WriteLandsWithoutAReceiveOrACompletion) {
  TwoHosts hosts;
  hosts.a.write(9, 0, 5000, hosts.b, 100);
  const auto packets = hosts.a.transmit_all();
  ASSERT_EQ(packets.size(), 5u);
  EXPECT_EQ(packets[0].opcode(), Opcode::kRcWriteFirst);
  EXPECT_EQ(packets[0].headers().reth.dma_length, 5000u);
  EXPECT_EQ(packets[4].opcode(), Opcode::kRcWriteLast);
  hosts.b.deliver(packets);
  hosts.exchange();
  expect_same(hosts.a, 0, hosts.b, 100, 5000);
  EXPECT_TRUE(hosts.b.completions.empty());
  ASSERT_EQ(hosts.a.completions.size(), 1u);
  EXPECT_EQ(hosts.a.completions[0].opcode, WcOpcode::kWrite);
}

TEST(Connection, ImmediatesReachTheReceiver) {
  TwoHosts hosts;
  hosts.b.receive(1, 8192, 3000);
  hosts.b.receive(2, 0, 0);
  const Sge sge = hosts.a.piece(0, 3000);
  SendWr wr{
      .wr_id = 1, .op = SendOp::kSendImm, .solicited = true, .imm = 0xCAFE0001, .sges = {&sge, 1}};
  ASSERT_TRUE(hosts.a.post(wr));
  wr.op = SendOp::kWriteImm;
  wr.imm = 0xCAFE0002;
  wr.solicited = false;
  wr.remote_address = hosts.b.piece(20000, 0).address;
  wr.rkey = hosts.b.keys.rkey;
  ASSERT_TRUE(hosts.a.post(wr));
  hosts.exchange();
  ASSERT_EQ(hosts.b.completions.size(), 2u);
  EXPECT_EQ(hosts.b.completions[0].opcode, WcOpcode::kRecv);
  EXPECT_EQ(hosts.b.completions[0].imm, 0xCAFE0001u);
  EXPECT_TRUE(hosts.b.completions[0].has_imm);
  EXPECT_TRUE(hosts.b.completions[0].solicited);
  EXPECT_EQ(hosts.b.completions[1].opcode, WcOpcode::kRecvWriteImm);
  EXPECT_EQ(hosts.b.completions[1].imm, 0xCAFE0002u);
  EXPECT_EQ(hosts.b.completions[1].byte_len, 3000u);
  EXPECT_FALSE(hosts.b.completions[1].solicited);
  expect_same(hosts.a, 0, hosts.b, 8192, 3000);
  expect_same(hosts.a, 0, hosts.b, 20000, 3000);
  EXPECT_TRUE(hosts.a.completions.empty()) << "unsignalled";
}

TEST(Connection, RequestsWithoutValuesSendZeros) {
  TwoHosts hosts;
  const Sge word = hosts.a.piece(0, 8);
  for (const SendOp op : {SendOp::kWrite, SendOp::kSendImm, SendOp::kSendInvalidate}) {
    ASSERT_TRUE(hosts.a.post(SendWr{.op = op}));
  }
  ASSERT_TRUE(hosts.a.post(SendWr{.op = SendOp::kCompareSwap, .sges = {&word, 1}}));
  const auto packets = hosts.a.transmit_all();
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[0].headers().reth, wire::Reth());
  EXPECT_EQ(packets[1].headers().imm.value, 0u);
  EXPECT_EQ(packets[2].headers().ieth.rkey, 0u);
  const wire::AtomicEth atomic = packets[3].headers().atomic;
  EXPECT_EQ(atomic.virtual_address + atomic.rkey + atomic.swap_add + atomic.compare, 0u);
}

TEST(Connection, PiecesAreGatheredAndScattered) {
  TwoHosts hosts({.mtu = 256});
  const Sge from[] = {hosts.a.piece(0, 100), hosts.a.piece(1000, 0), hosts.a.piece(2000, 457),
                      hosts.a.piece(5000, 300)};
  const Sge to[] = {hosts.b.piece(0, 300), hosts.b.piece(4000, 1), hosts.b.piece(8000, 4000)};
  ASSERT_TRUE(hosts.b.post(RecvWr{.wr_id = 1, .sges = to}));
  ASSERT_TRUE(hosts.a.post(SendWr{.wr_id = 1, .signaled = true, .sges = from}));
  hosts.exchange();
  std::vector<std::uint8_t> sent;
  std::vector<std::uint8_t> got;
  for (const auto& [offset, n] : {std::pair{0, 100}, {2000, 457}, {5000, 300}}) {
    const auto bytes = part(hosts.a, offset, n);
    sent.insert(sent.end(), bytes.begin(), bytes.end());
  }
  for (const auto& [offset, n] : {std::pair{0, 300}, {4000, 1}, {8000, 556}}) {
    const auto bytes = part(hosts.b, offset, n);
    got.insert(got.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(sent, got);
}

TEST(Connection, InlineDataMayChangeAfterThePost) {
  TwoHosts hosts;
  hosts.b.receive(1, 0, 128);
  std::vector<std::uint8_t> first(60, 0x11);
  std::vector<std::uint8_t> second(68, 0x22);
  const Sge sges[] = {{reinterpret_cast<std::uint64_t>(first.data()), 60, 0},
                      {reinterpret_cast<std::uint64_t>(second.data()), 68, 0}};
  ASSERT_TRUE(hosts.a.post(SendWr{.wr_id = 1, .inline_data = true, .sges = sges}));
  first.assign(60, 0xEE);
  second.assign(68, 0xEE);
  hosts.exchange();
  EXPECT_EQ(hosts.b.memory[0], 0x11);
  EXPECT_EQ(hosts.b.memory[59], 0x11);
  EXPECT_EQ(hosts.b.memory[60], 0x22);
  EXPECT_EQ(hosts.b.memory[127], 0x22);
}

TEST(Connection, SignalAllCompletesEverySend) {
  TwoHosts hosts({.signal_all = true});
  hosts.b.receive(1, 0, 64);
  ASSERT_TRUE(hosts.a.post(SendWr{.wr_id = 4, .sges = {}}));
  hosts.exchange();
  EXPECT_THAT(hosts.a.ids(), ElementsAre(4));
}

TEST(Connection, LongMessageKeepsToTheWindowAndRequestsAcks) {
  TwoHosts hosts({.mtu = 256}, {.window_packets = 16, .ack_every = 6});
  hosts.b.receive(1, 0, 256 * 40);
  hosts.a.send(1, 0, 256 * 40);
  const auto burst = hosts.a.transmit_all();
  ASSERT_EQ(burst.size(), 16u);
  std::vector<std::uint32_t> requesting;
  for (const Packet& p : burst) {
    if (p.requests_ack()) requesting.push_back(p.psn());
  }
  EXPECT_THAT(requesting, ElementsAre(105, 111, 115))
      << "every sixth, and the one that fills the window";
  hosts.b.deliver(burst);
  const auto acks = hosts.b.transmit_all();
  ASSERT_EQ(acks.size(), 1u) << "pending ACKs merge into the newest";
  EXPECT_EQ(acks[0].psn(), 115u);
  hosts.a.deliver(acks);
  hosts.exchange();
  EXPECT_THAT(hosts.a.statuses(), ElementsAre(WcStatus::kSuccess));
}

TEST(Connection, RequestsAcksMoreOftenAfterALoss) {
  TwoHosts hosts({.mtu = 256}, {.window_packets = 200, .ack_every = 100});
  const auto requesting = [&](const std::vector<Packet>& packets) {
    std::vector<std::uint32_t> psns;
    for (const Packet& p : packets) {
      if (p.requests_ack()) psns.push_back(p.psn());
    }
    return psns;
  };
  hosts.b.receive(1, 0, 256 * 150);
  hosts.a.send(1, 0, 256 * 150);
  auto burst = hosts.a.transmit_all();
  EXPECT_THAT(requesting(burst), ElementsAre(199, 249));
  burst.erase(burst.begin());
  hosts.b.deliver(burst);
  hosts.a.deliver(hosts.b.transmit_all());
  EXPECT_THAT(requesting(hosts.a.transmit_all()), ElementsAre(131, 163, 195, 227, 249));
}

TEST(Connection, SendsHalfAWindowAtOnceAfterALoss) {
  TwoHosts hosts({.mtu = 256}, {.window_packets = 100, .cautious_window = 50, .ack_every = 100});
  hosts.b.receive(1, 0, 256 * 200);
  hosts.a.send(1, 0, 256 * 200);
  auto burst = hosts.a.transmit_all();
  EXPECT_EQ(burst.size(), 100u);
  burst.erase(burst.begin());
  hosts.b.deliver(burst);
  hosts.a.deliver(hosts.b.transmit_all());
  EXPECT_EQ(hosts.a.transmit_all().size(), 50u);
}

TEST(Connection, OfLongMessagesIsInBulkOnBothSides) {
  TwoHosts hosts({.mtu = 256}, {.window_packets = 100, .ack_every = 200});
  const auto bulk = [&] { return std::pair(hosts.a.nic.bulk(), hosts.b.nic.bulk()); };
  const auto broadcast = [&](std::size_t packets) {
    hosts.b.receive(1, 0, 256 * packets);
    hosts.a.send(1, 0, 256 * packets);
  };
  broadcast(95);
  hosts.b.deliver(hosts.a.transmit_all());
  EXPECT_EQ(bulk(), std::pair(Bulk::kNone, Bulk::kNone)) << "short";
  hosts.exchange();
  broadcast(150);
  hosts.b.deliver(hosts.a.transmit_all());
  EXPECT_EQ(bulk(), std::pair(Bulk::kAmid, Bulk::kAmid));
  hosts.exchange();
  EXPECT_EQ(bulk(), std::pair(Bulk::kNone, Bulk::kBetween)) << "the next may be as long";
  broadcast(1);
  hosts.exchange();
  EXPECT_EQ(bulk(), std::pair(Bulk::kNone, Bulk::kNone));
}

TEST(Connection, IsQuietWhileOnlyAFewAcknowledgementsAreToCome) {
  TwoHosts hosts({.mtu = 256}, {.window_packets = 20});
  const auto send = [&](std::size_t packets) {
    hosts.b.receive(1, 0, 256 * packets);
    hosts.a.send(1, 0, 256 * packets);
  };
  EXPECT_TRUE(hosts.a.nic.is_quiet());
  send(5);
  EXPECT_FALSE(hosts.a.nic.is_quiet()) << "they have not been sent";
  const auto sent = hosts.a.transmit_all();
  EXPECT_TRUE(hosts.a.nic.is_quiet());
  hosts.b.deliver(sent);
  EXPECT_FALSE(hosts.b.nic.is_quiet()) << "it owes the acknowledgement";
  hosts.exchange();
  EXPECT_TRUE(hosts.a.nic.is_quiet() && hosts.b.nic.is_quiet());
  send(21);
  (void)hosts.a.transmit_all();
  EXPECT_FALSE(hosts.a.nic.is_quiet()) << "one does not fit into the window";
}

TEST(Connection, IsQuietWithThirtyTwoPacketsInFlightAndNotWithOneMore) {
  for (const std::uint32_t packets : {32, 33}) {
    TwoHosts hosts({.mtu = 256});
    hosts.a.send(1, 0, 256 * packets);
    EXPECT_EQ(hosts.a.transmit_all().size(), packets);
    EXPECT_EQ(hosts.a.nic.is_quiet(), packets == 32);
  }
}

TEST(Connection, CountsPacketsAndBytesOfBothDirections) {
  TwoHosts hosts({.mtu = 256});
  hosts.b.receive(1, 0, 300);
  hosts.a.send(1, 0, 300);
  const auto data = hosts.a.transmit_all();
  ASSERT_EQ(data.size(), 2u);
  hosts.b.deliver(data);
  const auto ack = hosts.b.transmit_all();
  ASSERT_EQ(ack.size(), 1u);
  EXPECT_EQ(hosts.a.count(Counter::kTxPackets), 2u);
  EXPECT_EQ(hosts.a.count(Counter::kTxBytes), data[0].bytes.size() + data[1].bytes.size());
  EXPECT_EQ(hosts.b.count(Counter::kRxPackets), 2u);
  EXPECT_EQ(hosts.b.count(Counter::kRxBytes), hosts.a.count(Counter::kTxBytes));
  EXPECT_EQ(hosts.b.count(Counter::kTxPackets), 1u);
  EXPECT_EQ(hosts.b.count(Counter::kTxBytes), ack[0].bytes.size());
}

TEST(Connection, CountsMemoryAccessesOfPeersWithoutACompletion) {
  TwoHosts hosts({.mtu = 256});
  const auto silent = [&] { return hosts.b.nic.counters()[Counter::kRxSilent]; };
  hosts.b.receive(1, 0, 1000);
  hosts.a.send(1, 0, 1000);
  hosts.exchange();
  EXPECT_EQ(silent(), 0u) << "a message completes a receive";
  hosts.a.write(2, 0, 1000, hosts.b, 0);
  hosts.exchange();
  EXPECT_EQ(silent(), 1u) << "a WRITE of several packets";
  hosts.a.atomic(3, SendOp::kFetchAdd, 0, hosts.b, 8, 1);
  hosts.exchange();
  EXPECT_EQ(silent(), 2u);
  hosts.a.read(4, 0, 1000, hosts.b, 0);
  hosts.exchange();
  EXPECT_EQ(silent(), 2u) << "a READ changes nothing";
}

TEST(Connection, QueuePairsOfOneNicTakeTurns) {
  TwoHosts hosts({.mtu = 256});
  const Qpn first = hosts.a.qpn;
  hosts.a.create(hosts.options);
  ASSERT_TRUE(hosts.a.to_init(hosts.options));
  ASSERT_TRUE(hosts.a.to_rtr(hosts.options, hosts.b, Psn(0)));
  ASSERT_TRUE(hosts.a.to_rts(hosts.options, Psn(5000)));
  hosts.a.send(2, 0, 256 * 3);
  hosts.a.qpn = first;
  hosts.a.send(1, 0, 256 * 3);
  std::vector<std::uint32_t> psns;
  for (const Packet& p : hosts.a.transmit_all()) psns.push_back(p.psn());
  EXPECT_THAT(psns, ElementsAre(5000, 100, 5001, 101, 5002, 102));
}

TEST(Connection, AcksLeaveBeforeRequestsAndNeedNoBuffer) {
  TwoHosts hosts;
  hosts.b.receive(1, 0, 1000);
  hosts.a.receive(1, 0, 1000);
  hosts.a.send(1, 0, 1000);
  hosts.b.send(1, 0, 1000);
  hosts.b.deliver(*hosts.a.transmit());
  wire::Frame frame;
  NicOutput actions;
  ASSERT_TRUE(hosts.b.nic.transmit(hosts.now, {}, frame, actions));
  EXPECT_EQ(wire::RoceHeaders::parse(frame)->bth.opcode, Opcode::kRcAcknowledge);
  EXPECT_FALSE(hosts.b.nic.transmit(hosts.now, {}, frame, actions)) << "the send needs a buffer";
  EXPECT_TRUE(hosts.b.nic.wants_to_transmit());
  EXPECT_EQ(hosts.b.transmit()->opcode(), Opcode::kRcSendOnly);
}

TEST(Connection, IcrcMayStayDeferredOnMemoryLinks) {
  TwoHosts hosts({}, {.make_icrc = false});
  hosts.b.receive(1, 0, 1000);
  hosts.a.send(1, 0, 1000);
  wire::Frame frame;
  NicOutput actions;
  std::vector<std::uint8_t> buffer(4096);
  ASSERT_TRUE(hosts.a.nic.transmit(hosts.now, buffer, frame, actions));
  EXPECT_EQ(frame.icrc_state, wire::Icrc::kDeferred);
  EXPECT_EQ(frame.external, buffer.data());
  hosts.b.nic.on_packet(hosts.now, frame, actions);
  EXPECT_EQ(actions.completions.size(), 1u);
}

}  // namespace
}  // namespace cepheus::rnic::testing
