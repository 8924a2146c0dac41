// Limits of hosts that send too much, for the benefit of others.
#include <gtest/gtest.h>

#include <map>

#include "switch-emulator/live/datapath/test_datapath.h"
#include "switch-emulator/live/test_fabric.h"
#include "switch-emulator/live/test_group.h"
#include "wire/byte_order.h"
#include "wire/test_bytes.h"

namespace cepheus::live {
namespace {

using fabric::BareClient;
using fabric::PortCounter;
using wire::Frame;
using wire::Ipv4;
using wire::Qpn;

// Host 0 floods host 1 for 10 ms; meanwhile host 2 may send to host 3 now and then.
class FloodTest : public DatapathTest {
 protected:
  static constexpr std::uint32_t kRounds = 2000, kEvery = 10;
  // Unanswered frames: the first of a stream, the burst, and 10 ms of the rate.
  static constexpr std::uint32_t kAllowed =
      static_cast<std::uint32_t>(AnsweredFrames::kPerAnswer + UnansweredBudget::kBurst +
                                 UnansweredBudget::kPerSecond / 100 + 256);

  static Frame roce(std::size_t from, Ipv4 to, wire::Opcode opcode = wire::Opcode::kRcSendOnly,
                    std::uint32_t dma_length = 0) {
    wire::RoceHeaders headers;
    headers.ip.source = address(from);
    headers.ip.destination = to;
    headers.bth.opcode = opcode;
    if (dma_length != 0) headers.reth = wire::Reth{0, 0, dma_length};
    Frame frame;
    headers.emit(frame, 0);
    return frame;
  }
  static wire::MrpMessage about_group(MrpType type) { return wire::mrp_message(type, kGroup); }

  FloodTest() { build_star(4); }
  void build_star(std::size_t hosts) {
    clients.clear();
    build(net::Topology::star(hosts));
    for (std::size_t host = 0; host < hosts; ++host) clients.push_back(attach(host));
  }
  // A group of all hosts, led by host 0; returns its first packet.
  Frame set_up_group() {
    wire::MrpMessage message = about_group(MrpType::kRegister);
    for (std::size_t host = 0; host < clients.size(); ++host) {
      message.add({address(host), Qpn(7)});
    }
    send_mrp(clients[0], 0, message);
    message = about_group(MrpType::kActivate);
    message.header.flags = static_cast<std::uint16_t>(clients.size() - 1);
    send_mrp(clients[0], 0, message);
    take_all(clients[1]);
    Frame data = roce(0, kGroup);
    wire::RoceHeaders headers = *wire::RoceHeaders::parse(data);
    headers.bth.destination_qp = wire::kVirtualQpn;
    headers.bth.psn = wire::group_start_psn(kGroup, 1);
    headers.emit(data, 0);
    return data;
  }
  // The number of frames of `flood` that reach host 1. Meanwhile `answer` is called each round.
  template <typename Answer>
  std::uint32_t flood_with(const Frame& flood, Answer&& answer) {
    std::uint32_t passed = 0;
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      while (clients[0].tx.free_entries() > 0) clients[0].put(flood, 0);
      if (others_send && round % kEvery == 0) clients[2].put(roce(2, address(3)), 0);
      datapath->poll(now);
      answer(passed);
      passed += take_all(clients[1]);
      others_passed += take_all(clients[3]);
      take_all(clients[0]);
      now += std::chrono::microseconds(5);
    }
    return passed;
  }
  std::uint32_t flood_with(const Frame& flood) {
    return flood_with(flood, [](std::uint32_t) {});
  }

  std::vector<BareClient> clients;
  bool others_send = true;
  std::uint32_t others_passed = 0;
};

TEST_F(FloodTest, ManyPacketsOfLongMessagesInARowAreBulk) {
  const auto send = [&](int packets, wire::Opcode opcode) {
    for (int i = 0; i < packets; ++i) clients[2].put(roce(2, address(3), opcode), 0);
    while (datapath->poll(now)) {
    }
  };
  send(100, wire::Opcode::kRcSendOnly);
  EXPECT_FALSE(datapath->is_amid_bulk(now)) << "messages of one packet";
  send(100, wire::Opcode::kRcSendMiddle);
  EXPECT_TRUE(datapath->is_amid_bulk(now));
  now += std::chrono::milliseconds(1);
  EXPECT_FALSE(datapath->is_amid_bulk(now));
  send(50, wire::Opcode::kRcSendMiddle);
  EXPECT_FALSE(datapath->is_amid_bulk(now)) << "a few";
}

TEST_F(FloodTest, WaitsWhileOthersSend) {
  const std::uint32_t passed = flood_with(roce(0, address(1)));
  EXPECT_LE(passed, kAllowed);
  EXPECT_GE(passed, UnansweredBudget::kBurst);
  EXPECT_EQ(others_passed, kRounds / kEvery);
  EXPECT_GT(counted(0, PortCounter::kHeldBack), 0u);
}

TEST_F(FloodTest, PassesWhileNoOtherHostSends) {
  others_send = false;
  EXPECT_GT(flood_with(roce(0, address(1))), 10 * kAllowed);
  EXPECT_EQ(counted(0, PortCounter::kHeldBack), 0u);
}

TEST_F(FloodTest, CountsThoughAnAccompliceAnswers) {
  EXPECT_LE(flood_with(roce(0, address(1)),
                       [&](std::uint32_t) {
                         if (clients[3].tx.free_entries() > 0)
                           clients[3].put(roce(3, address(0)), 0);
                       }),
            kAllowed);
}

TEST_F(FloodTest, CountsThoughAnsweredIfItsReceiverIsFull) {
  std::uint32_t sent = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (; clients[0].tx.free_entries() > 0; ++sent) clients[0].put(roce(0, address(1)), 0);
    if (clients[1].tx.free_entries() > 0) clients[1].put(roce(1, address(0)), 0);
    datapath->poll(now);
    take_all(clients[0]);
    now += std::chrono::microseconds(5);
  }
  EXPECT_LE(sent, kAllowed + 2 * fabric::kFrameRing) << "one ring is full, the other waits";
  EXPECT_GT(counted(0, PortCounter::kHeldBack), 0u);
}

TEST_F(FloodTest, DoesNotCountIfItAnswersAReadRequest) {
  clients[1].put(roce(1, address(0), wire::Opcode::kRcReadRequest, 1 << 30), 0);
  datapath->poll(now);
  EXPECT_GT(flood_with(roce(0, address(1))), 10 * kAllowed);
}

// The switch drops them, because it has no permission for them.
TEST_F(FloodTest, OfDroppedFramesWaitsToo) {
  Frame unanswered = roce(0, address(1));
  wire::store_be32(unanswered.bytes.data() + wire::kIpOffset + 12, address(3).value());
  flood_with(unanswered);
  const auto status = datapath->reporting().status([](const auto& slice) { slice(); });
  const PortStatus& port = status[0].ports[0];
  EXPECT_LE(counter(port, "drop_malformed") + counter(port, "drop_spoofed_source"), kAllowed);
}

TEST_F(FloodTest, OfImpossibleDescriptorsWaitsToo) {
  Frame bad = roce(0, address(1));
  bad.icrc_state = wire::Icrc::kNone;  // RoCE has one
  flood_with(bad);
  EXPECT_LE(counted(0, PortCounter::kDropBadDescriptor), kAllowed);
  EXPECT_EQ(others_passed, kRounds / kEvery);
}

TEST_F(FloodTest, WaitsInTheMiddleOfItsTurn) {
  build_star(64);
  const Frame data = set_up_group();
  for (std::uint32_t n = 0; n < AnsweredFrames::kPerAnswer; ++n) clients[0].put(data, 0);
  clients[2].put(roce(2, address(3)), 0);
  poll_for(std::chrono::milliseconds(1));
  EXPECT_EQ(take_all(clients[1]), AnsweredFrames::kPerAnswer) << "answers pay for these";
  while (clients[0].tx.free_entries() > 0) clients[0].put(data, 0);
  datapath->poll(now);
  EXPECT_LE(take_all(clients[1]), UnansweredBudget::kBurst / 63 + 1);
}

// The switch's own answers to a flood, for instance that WRITEs are refused, do not pay for more of
// it.
TEST_F(FloodTest, IsNotAnsweredByTheSwitch) {
  wire::MrpMessage message = about_group(MrpType::kRegister);
  for (std::size_t host = 0; host < 2; ++host) message.add({address(host), Qpn(7)});
  send_mrp(clients[0], 0, message);
  message = about_group(MrpType::kActivate);
  message.header.flags = 1;
  send_mrp(clients[0], 0, message);
  wire::RoceHeaders headers;
  headers.ip.source = address(0);
  headers.ip.destination = kGroup;
  headers.bth.opcode = wire::Opcode::kRcReadRequest;
  headers.bth.destination_qp = wire::kVirtualQpn;
  headers.bth.psn = wire::group_start_psn(kGroup, 1);
  headers.reth = wire::Reth{0, 0, 1};
  Frame refused;
  headers.emit(refused, 0);
  flood_with(refused);
  const auto status = datapath->reporting().status([](const auto& slice) { slice(); });
  const auto count = counter(status[0].ports[0], "drop_not_multicastable");
  EXPECT_GT(count, 0u);
  EXPECT_LE(count, kAllowed);
}

// Registration is parsed, here and at its destination, which takes longer than forwarding. No
// answer pays for it, whatever its destination.
TEST_F(FloodTest, CountsFramesThatMustBeParsed) {
  const std::vector<std::uint8_t> payload(1400);
  std::uint32_t passed = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round, now += std::chrono::microseconds(5)) {
    while (clients[0].tx.free_entries() > 0) {
      const auto slot = clients[0].take_slot();
      if (!slot) break;
      clients[0].put(plain_datagram(0, 1, payload), *slot);
    }
    clients[2].put(roce(2, address(3)), 0);
    clients[1].put(roce(1, address(0)), 0);
    datapath->poll(now);
    passed += take_all(clients[1]);
    take_all(clients[0]);
    take_all(clients[3]);
  }
  EXPECT_GT(passed, 0u);
  EXPECT_LE(passed, (kAllowed - AnsweredFrames::kPerAnswer) / 22 + 40);
}

TEST_F(FloodTest, DoesNotEvadeItsBudgetByAttachingAgain) {
  const Frame unanswered = roce(0, address(1));
  std::uint32_t passed = 0;
  for (int round = 0; round < 100; ++round, now += std::chrono::microseconds(100)) {
    while (clients[0].tx.free_entries() > 0) clients[0].put(unanswered, 0);
    clients[2].put(roce(2, address(3)), 0);
    datapath->poll(now);
    datapath->detach(now, 0);
    clients[0] = attach(0);
    passed += take_all(clients[1]);
    take_all(clients[3]);
  }
  EXPECT_LE(passed, kAllowed + fabric::kFrameRing);
}

// The next client may be another user's.
TEST_F(FloodTest, DoesNotBlockTheNextClientOfItsHost) {
  build_star(64);
  const Frame data = set_up_group();
  while (clients[0].tx.free_entries() > 0) clients[0].put(data, 0);
  clients[2].put(roce(2, address(3)), 0);
  datapath->poll(now);
  datapath->detach(now, 0);
  take_all(clients[1]);
  clients[0] = attach(0, 1001);
  clients[0].put(plain_datagram(0, 1, std::vector<std::uint8_t>(8)), 0);
  poll_for(std::chrono::milliseconds(100));
  EXPECT_EQ(take_all(clients[1]), 1u);
}

using TurnTest = DatapathTest;

// Frames of any size have the same turn: twice as many frames of half the size.
TEST_F(TurnTest, IsByBytes) {
  build(net::Topology::star(4));
  BareClient large = attach(0), first = attach(1), small = attach(2), second = attach(3);
  const std::vector<std::uint8_t> much(4000), little(8);
  for (int n = 0; n < 500; ++n) {
    large.put(plain_datagram(0, 1, much), *large.take_slot());
    small.put(plain_datagram(2, 3, little), 0);
  }
  datapath->poll(now);
  EXPECT_NEAR(take_all(first), 33, 1);
  EXPECT_NEAR(take_all(second), 66, 1);
}

// Frames under way of one host do not use up all memory.
TEST_F(TurnTest, LeavesSpaceUnderWay) {
  net::LinkConfig link;
  link.delay = std::chrono::seconds(1);
  net::Topology topology = net::Topology::star(4);
  for (net::HostSpec& host : topology.hosts) host.up = link;
  build(topology);
  BareClient flooder = attach(0), victim = attach(1), sender = attach(2), receiver = attach(3);
  const Frame unanswered = plain_datagram(0, 1, std::vector<std::uint8_t>(8));
  for (std::size_t n = 0; n < 2 * FlightAccount::kMost; ++n) {
    if (flooder.tx.free_entries() == 0) datapath->poll(now);
    flooder.put(unanswered, 0);
  }
  sender.put(plain_datagram(2, 3, std::vector<std::uint8_t>(8)), 0);
  poll_for(std::chrono::milliseconds(1));
  for (int n = 0; n < 200; ++n) datapath->poll(now + std::chrono::seconds(2));
  EXPECT_TRUE(receiver.take());
}

// A host that fills the queue before a slow link leaves space for others.
TEST_F(TurnTest, LeavesSpaceBeforeASlowLink) {
  net::Topology topology = net::Topology::star(3);
  topology.hosts[2].down.rate.bits_per_second = 10'000'000;
  topology.hosts[2].down.queue_bytes = 64 << 10;
  build(topology);
  BareClient first = attach(0), second = attach(1), receiver = attach(2);
  const std::vector<std::uint8_t> payload(1000);
  const auto send = [&](BareClient& client, std::size_t host, int frames) {
    for (int n = 0; n < frames; ++n) {
      client.put(plain_datagram(host, 2, payload), *client.take_slot());
      datapath->poll(now);
    }
  };
  const auto received = [&] {
    std::map<std::uint8_t, int> from;
    poll_for(std::chrono::milliseconds(100));
    while (const auto got = receiver.take()) ++from[got->bytes[wire::kIpOffset + 15]];
    return from;
  };
  for (int round = 0; round < 3; ++round) {
    send(first, 0, 100);
    send(second, 1, 12);
    const auto from = received();
    EXPECT_NEAR(from.at(1), 41, 2) << "two thirds of the limit";
    EXPECT_EQ(from.at(2), 12);
  }
}

TEST_F(TurnTest, ReturnsSpaceUnderWay) {
  net::LinkConfig link;
  link.delay = std::chrono::milliseconds(1);
  build(net::Topology::star(2, link));
  BareClient sender = attach(0), receiver = attach(1);
  const Frame datagram = plain_datagram(0, 1, std::vector<std::uint8_t>(8));
  for (std::size_t n = 0; n < FlightAccount::kMost; ++n) {
    if (sender.tx.free_entries() == 0) poll_for(std::chrono::milliseconds(3));
    sender.put(datagram, 0);
    take_all(receiver);
  }
  poll_for(std::chrono::milliseconds(3));
  EXPECT_GT(take_all(receiver), 0u);
}

using DoorbellTest = DatapathTest;

TEST_F(DoorbellTest, IsNoLongerIgnoredOnceAnotherClientHasIt) {
  build(net::Topology::star(2));
  attach(0);
  while (datapath->wake(0)) datapath->poll(now);
  datapath->detach(now, 0);
  attach(0);
  EXPECT_TRUE(datapath->wake(0));
  datapath->poll(now + std::chrono::milliseconds(1));
  EXPECT_EQ(datapath->deadline(), wire::kNever) << "it is not looked at without being rung";
}

}  // namespace
}  // namespace cepheus::live
