// PROBE: the switch's answers, their receivers, and the orders of leaders.
#include "switch-emulator/engine/registration/probes.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"
#include "wire/icrc.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::OrderKind;
using wire::OrderRecord;
using wire::Probe;

constexpr std::uint16_t kReplyPort = 4242;

Probe probe_of(std::uint16_t answer_bytes = 0) {
  Probe probe;
  probe.header = {wire::MrpType::kProbe, 0, 1, 3, 1, TestNetwork::kGroup, 1};
  probe.reply_port = kReplyPort;
  probe.answer_bytes = answer_bytes;
  return probe;
}

class Probed : public testing::Test {
 protected:
  void start(std::size_t hosts = 3, const std::function<void(SwitchConfig&)>& change = {}) {
    net = make_star(hosts, true, change);
    net->listens = false;
  }

  // A host's PROBE in a datagram of `bytes`.
  void send(std::size_t host, const Probe& probe, std::size_t bytes = 0,
            const wire::MrpKey* key = nullptr, std::uint16_t port = wire::kDefaultMrpUdpPort) {
    std::vector<std::uint8_t> payload(std::max<std::size_t>(bytes, 200));
    std::size_t size = probe.emit(payload);
    if (key != nullptr) size = key->sign(TestNetwork::ip(host), payload, size);
    payload.resize(std::max(size, bytes));
    wire::UdpDatagram datagram;
    datagram.ethernet.source = wire::Mac{{2, 0, 0, 0, 0, 9}};
    datagram.ip.source = TestNetwork::ip(host);
    datagram.ip.destination = TestNetwork::kGroup;
    datagram.ip.tos = 0x68;
    datagram.ip.ttl = 63;
    datagram.udp.source_port = 777;
    datagram.udp.destination_port = port;
    Frame frame;
    datagram.emit(frame, payload);
    net->inject_bytes(host, wire::bytes_of(frame));
  }
  // To RoCE's port, as an unreliable datagram.
  void send_roce(std::size_t host, const Probe& probe) {
    const auto payload = wire::bytes_of(probe);
    wire::RoceHeaders h;
    h.ip.source = TestNetwork::ip(host);
    h.ip.destination = TestNetwork::kGroup;
    h.udp.source_port = 777;
    h.bth.opcode = wire::Opcode::kUdSendOnly;
    h.bth.destination_qp = wire::kVirtualQpn;
    Frame frame;
    h.emit(frame, payload.size());
    frame.set_external_payload(payload, wire::kNoBuffer);
    wire::seal_icrc(frame);
    net->inject_bytes(host, wire::bytes_of(frame));
  }
  struct Answer {
    wire::UdpDatagram datagram;
    std::size_t bytes = 0;
    Probe probe;
  };
  // The last frame to the host.
  Answer answer(std::size_t host) {
    Answer found;
    if (net->frames(host).empty()) {
      ADD_FAILURE() << "no answer";
      return found;
    }
    const auto frame = Frame::from_bytes(net->frames(host).back());
    const auto datagram = wire::UdpDatagram::parse(*frame);
    const auto probe = Probe::parse(frame->payload());
    if (!datagram || !probe) {
      ADD_FAILURE() << "another packet than an answer";
      return found;
    }
    return {*datagram, frame->payload().size(), *probe};
  }
  std::size_t received(std::size_t host) { return net->frames(host).size(); }
  OrderRecord order(OrderKind kind, std::uint16_t number = 0) {
    Probe probe = probe_of();
    probe.order = OrderRecord{kind, number};
    send(0, probe);
    return answer(0).probe.order.value_or(OrderRecord{});
  }

  std::unique_ptr<TestNetwork> net;
};

TEST_F(Probed, ShowsWhatArrivedToAPortThatHasSentNothing) {
  start();
  send(1, probe_of(), 1000);
  const Answer a = answer(1);
  EXPECT_EQ(a.probe.header.type, wire::MrpType::kProbed);
  EXPECT_EQ(a.probe.header.seq, 3);
  EXPECT_EQ(a.probe.seen.length, 1028);
  EXPECT_EQ(a.probe.seen.tos, 0x68);
  EXPECT_EQ(a.probe.seen.ttl, 63);
  EXPECT_EQ(a.probe.seen.vlan_tag, Frame::kUntagged);
  EXPECT_EQ(a.probe.seen.source_mac, (wire::Mac{{2, 0, 0, 0, 0, 9}}));
  EXPECT_EQ(a.probe.seen.source_port, 777);
  EXPECT_EQ(a.probe.seen.destination_port, wire::kDefaultMrpUdpPort);
  EXPECT_EQ(a.probe.seen.time_us, 1'000'000u);
  EXPECT_EQ(a.probe.seen.largest, 4096 + 128 - 14);
  EXPECT_EQ(a.datagram.ip.source, TestNetwork::kGroup);
  EXPECT_EQ(a.datagram.ip.tos, 0x68);
  EXPECT_EQ(a.datagram.udp.source_port, wire::kDefaultMrpUdpPort);
  EXPECT_EQ(a.datagram.udp.destination_port, kReplyPort);
  Probe from_switch = probe_of();
  from_switch.header.flags = Probe::kFromSwitch;
  send(1, from_switch);
  EXPECT_EQ(answer(1).datagram.ip.source, net->config(0).address);
}

TEST_F(Probed, ShowsWhatArrivedAtThePortOfRoce) {
  start();
  send_roce(1, probe_of());
  EXPECT_EQ(answer(1).probe.seen.destination_port, wire::kRoceUdpPort);
  EXPECT_EQ(answer(1).datagram.udp.destination_port, kReplyPort);
}

TEST_F(Probed, AnswersAreNeverLongerThanRequests) {
  start();
  for (const std::size_t bytes : {60u, 1000u, 4132u}) {
    send(1, probe_of(0xFFFF), bytes);
    EXPECT_EQ(answer(1).bytes, bytes);
    send(1, probe_of(500), bytes);
    EXPECT_EQ(answer(1).bytes, std::min<std::size_t>(bytes, 500));
    send(1, probe_of(), bytes);
    EXPECT_EQ(answer(1).bytes, 60u);
  }
}

TEST_F(Probed, TakesNoMoreThanItsRate) {
  start(3, [](SwitchConfig& c) { c.probe_rate = 100; });
  for (int n = 0; n < 1000; ++n) {
    send(1, probe_of());
    if (n % 100 == 99) net->advance(milliseconds(10));
  }
  EXPECT_NEAR(static_cast<double>(received(1)), 25 + 10, 2) << "the burst, and 0.1 s";
  EXPECT_EQ(net->count(Counter::kDropProbe), 1000 - received(1));
  send(2, probe_of());
  EXPECT_EQ(received(2), 1u) << "another host has its own";
}

TEST_F(Probed, IsOffWithoutARate) {
  start(3, [](SwitchConfig& c) { c.probe_rate = 0; });
  send(1, probe_of());
  EXPECT_EQ(received(1), 0u);
  EXPECT_EQ(net->count(Counter::kDropProbe), 1u);
}

TEST_F(Probed, NeedsTheFabricsKey) {
  const auto key = *wire::MrpKey::parse("000102030405060708090a0b0c0d0e0f");
  start(3, [&](SwitchConfig& c) { c.mrp_key = std::make_shared<wire::MrpKey>(key); });
  send(1, probe_of());
  send(1, probe_of(), 1000);
  EXPECT_EQ(net->count(Counter::kDropMrpUnauthenticated), 2u);
  EXPECT_EQ(received(1), 0u);
  send(1, probe_of(0xFFFF), 1000, &key);
  EXPECT_EQ(answer(1).bytes, 1000u);
  const auto frame = Frame::from_bytes(net->frames(1).back());
  EXPECT_TRUE(key.verify(TestNetwork::kGroup, frame->payload().first(80)));
}

TEST_F(Probed, MalformedOnesAreDropped) {
  start();
  Probe probe = probe_of();
  probe.header.mcst_id = McstId(198, 18, 0, 8);
  send(1, probe);
  EXPECT_EQ(net->count(Counter::kDropMalformed), 1u) << "it names another group";
  probe = probe_of();
  probe.header.type = wire::MrpType::kProbed;
  send(1, probe);
  EXPECT_EQ(net->count(Counter::kDropMalformed), 2u) << "an answer";
  EXPECT_EQ(received(1), 0u);
}

TEST_F(Probed, DropsTheLastPacketOfAMessageOnceForTheLeader) {
  start();
  EXPECT_EQ(order(OrderKind::kLast).done, 0u);
  net->message(0, 0, 2);
  EXPECT_EQ(net->inbox(1), Texts({"data 0", "data 1"}));
  EXPECT_EQ(net->count(Counter::kDropDataOnRequest), 1u);
  net->advance(milliseconds(67));
  net->data(0, 2);
  EXPECT_EQ(net->inbox(1), Texts({"data 2"}));
  const OrderRecord report = order(OrderKind::kNone);
  EXPECT_EQ(report.done, 1u);
  EXPECT_EQ(report.repeat_us, 67'000u);
  EXPECT_EQ(report.nak_us, OrderRecord::kUnknown);
}

TEST_F(Probed, DropsAPacketInTheMiddleAndTimesTheNak) {
  start();
  order(OrderKind::kPacket, 1);
  net->message(0, 0, 3);
  EXPECT_EQ(net->inbox(1), Texts({"data 0", "data 2", "data 3"}));
  net->advance(milliseconds(3));
  net->nak(1, 1);
  net->nak(2, 1);
  net->advance(milliseconds(4));
  net->message(0, 1, 3);
  const OrderRecord report = order(OrderKind::kNone);
  EXPECT_EQ(report.nak_us, 3000u);
  EXPECT_EQ(report.repeat_us, 7000u);
}

// As live, where a switch repeats the last ACK of a turn.
TEST_F(Probed, DropsTheLastMergedAck) {
  start(3, [](SwitchConfig& c) { c.rules.last_ack_again = true; });
  order(OrderKind::kAck);
  net->message(0, 0, 1);
  net->ack({1, 2}, 0);
  EXPECT_EQ(net->inbox(0).back(), "ack 0") << "not of a whole message";
  net->clear();
  net->ack({1, 2}, 1);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kDropAckOnRequest), 1u);
  net->advance(milliseconds(20));
  EXPECT_EQ(net->inbox(0), Texts()) << "nor is it repeated";
  net->data(0, 1);
  EXPECT_EQ(net->inbox(0), Texts({"ack 1"})) << "the source's repeat is answered";
  const OrderRecord report = order(OrderKind::kNone);
  EXPECT_EQ(report.done, 1u);
  EXPECT_EQ(report.repeat_us, 20000u);
}

// No more than packets of the leader, so that an order can't make more traffic than there is.
TEST_F(Probed, AnswersTheLeadersPacketsWithCnpsAsManyAsOrdered) {
  start();
  order(OrderKind::kCnp, 2);
  net->clear();
  net->message(0, 0, 2);
  EXPECT_EQ(net->inbox(0), Texts({"cnp", "cnp"}));
  net->ack({1, 2}, 2);
  EXPECT_EQ(order(OrderKind::kCnp, 1000).done, 2u);
  net->clear();
  net->message(1, 0, 2);
  EXPECT_EQ(net->inbox(1), Texts()) << "another source gets none";
  net->ack({0, 2}, 2);
  EXPECT_EQ(order(OrderKind::kNone).done, 2u);
  EXPECT_EQ(net->count(Counter::kCnpOnRequest), 2u);
}

TEST_F(Probed, CountsPacketsRepeatsAndNaksForTheLeader) {
  start();
  net->tos = 0x6A;
  order(OrderKind::kNone);
  net->message(0, 0, 2);
  net->nak(1, 1);
  net->message(0, 1, 2);
  net->rnr(2, 2);
  const OrderRecord report = order(OrderKind::kNone);
  EXPECT_EQ(report.packets, 5u);
  EXPECT_EQ(report.repeats, 2u);
  EXPECT_EQ(report.naks, 1u);
  EXPECT_EQ(report.rnr_naks, 1u);
  EXPECT_EQ(report.tos, 0x6A);
}

struct FixedSight final : PortSight {
  std::uint8_t doubts() const override { return wire::ProbeSight::kRoce; }
  std::uint8_t cores() const override { return 8; }
  std::uint32_t lost() const override { return 5; }
  std::uint8_t fill() const override { return filled; }
  std::uint8_t filled = 70;
};

TEST_F(Probed, ShowsWhatItsBoxKnowsOfThePortsOfAGroup) {
  start();
  FixedSight sight;
  for (const std::size_t host : {0u, 1u}) net->sw(0).watch(net->port_of(host), sight);
  send(2, probe_of());
  EXPECT_EQ(answer(2).probe.seen.cores, 0) << "nothing is known";
  send(1, probe_of());
  EXPECT_EQ(answer(1).probe.seen.doubts, wire::ProbeSight::kRoce);
  EXPECT_EQ(answer(1).probe.seen.cores, 8);
  EXPECT_EQ(answer(1).probe.seen.lost, 5u);
  EXPECT_EQ(order(OrderKind::kNone).fill, 0);
  net->data(0, 0);
  sight.filled = 20;
  net->data(0, 1);
  EXPECT_EQ(order(OrderKind::kNone).fill, 70) << "the most";
  net->data(0, 2);
  const OrderRecord report = order(OrderKind::kNone);
  EXPECT_EQ(report.fill, 20) << "since the last report";
  EXPECT_EQ(report.lost, 10u) << "of both";
}

TEST_F(Probed, TakesOrdersOfTheGroupsLeaderAlone) {
  start();
  Probe probe = probe_of();
  probe.order = OrderRecord{OrderKind::kLast};
  send(1, probe);  // a member
  probe.header.instance = 2;
  send(0, probe);  // another process
  probe.header.instance = 1;
  probe.header.epoch = 2;
  send(0, probe);
  probe.header.epoch = 1;
  send_roce(0, probe);
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 4u);
  EXPECT_EQ(received(0) + received(1), 0u);
  net->message(0, 0, 0);
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
  EXPECT_EQ(net->count(Counter::kDropDataOnRequest), 0u);
}

TEST(ProbedBehindATrunk, IsAnsweredByTheHostsOwnSwitchOnly) {
  auto net = make_pair_of_switches();
  const auto payload = wire::bytes_of(probe_of());
  wire::UdpDatagram datagram;
  datagram.ip.source = TestNetwork::ip(0);
  datagram.ip.destination = TestNetwork::kGroup;
  datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  Frame frame;
  datagram.emit(frame, payload);
  net->inject_at(1, net->port_between(1, 0), wire::bytes_of(frame));
  EXPECT_EQ(net->count(Counter::kDropMrpForged, 1), 1u);
}

}  // namespace
}  // namespace cepheus::fabric
