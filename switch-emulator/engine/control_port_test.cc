// A leader's messages to its members reach the members' processes.
#include <gtest/gtest.h>

#include "switch-emulator/engine/registration/registration.h"
#include "switch-emulator/engine/test_network.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

using wire::MrpType;

// Every host of these networks checks that datagrams are for its process's port (TestNetwork).
TEST(ControlPort, OfTheMemberGetsItsDatagrams) {
  auto net = make_pair_of_switches(false);
  net->register_group(0, 1);
  net->control(0, MrpType::kActivate, 1);
  net->clear();
  net->control(0, MrpType::kAlive, 1, {net->member(1), net->member(3)});
  EXPECT_EQ(net->inbox(1), Texts({"alive e1"}));
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->inbox(3), Texts({"alive e1"}));
  net->control(0, MrpType::kEvict, 1, {net->member(2)});
  EXPECT_EQ(net->inbox(2), Texts({"unregister e1"}));
  net->control(0, MrpType::kUnregister, 1);
  EXPECT_EQ(net->inbox(3), Texts({"unregister e1"}));
}

TEST(GiveUp, ReachesMembersBehindSwitchesWithoutTheGroup) {
  auto net = make_pair_of_switches(false);
  net->control(0, MrpType::kGiveUp, 1, {net->member(3), net->member(1), net->member(2)});
  EXPECT_EQ(net->inbox(1), Texts({"give up e1 10.0.0.2"}));
  EXPECT_EQ(net->inbox(2), Texts({"give up e1 10.0.0.3"}));
  EXPECT_EQ(net->inbox(3), Texts({"give up e1 10.0.0.4"}));
  net->control(0, MrpType::kGiveUp, 1, {net->member(0), {Ipv4(10, 9, 9, 9), Qpn(5)}});
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kDropNoRoute), 1u) << "one datagram, whomever it names";
}

TEST(GiveUp, ByAnotherThanTheLeaderIsForeign) {
  auto net = make_star(3);
  net->control(1, MrpType::kGiveUp, 1, {net->member(2)});
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 1u);
}

TEST(Alive, ByAnotherThanTheLeaderIsForeign) {
  auto net = make_star(3);
  net->control(1, MrpType::kAlive, 1, {net->member(2)});
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->count(Counter::kDropMrpForeign), 1u);
}

// Two processes of host 1 are members of two groups.
TEST(ControlPort, DistinguishesTheProcessesOfAHost) {
  auto net = make_star(3, false);
  net->listens = false;
  const auto port_of_arrival = [&] {
    const auto frame = Frame::from_bytes(net->frames(1).back());
    return wire::UdpDatagram::parse(*frame)->udp.destination_port;
  };
  wire::MrpMember other = net->member(1);
  other.qpn = Qpn(0x777);
  other.control_port = 41000;
  net->register_group(0, 1, {0, 1});
  EXPECT_EQ(port_of_arrival(), TestNetwork::control_port(1));
  wire::MrpMessage second = TestNetwork::message_about(MrpType::kRegister, {net->member(2), other});
  second.header.mcst_id = McstId(198, 18, 0, 8);
  net->send_message(2, second);
  EXPECT_EQ(port_of_arrival(), 41000);
  second.header.type = MrpType::kActivate;
  second.header.flags = 1;
  second.member_count = 0;
  net->send_message(2, second);
  EXPECT_EQ(port_of_arrival(), 41000);
  net->control(0, MrpType::kActivate, 1);
  EXPECT_EQ(port_of_arrival(), TestNetwork::control_port(1));
  EXPECT_EQ(net->sw(0).group_count(), 2u);
}

// Datagrams from the registration port come from the process's switch.
TEST(ControlPort, IsNotReachedByOtherHostsInTheSwitchsName) {
  auto net = make_star(3);
  const auto report = TestNetwork::message_about(MrpType::kReport, {net->member(1)});
  const auto payload = wire::bytes_of(report);
  wire::UdpDatagram datagram;
  datagram.ip.source = TestNetwork::ip(2);
  const auto send = [&](Ipv4 to, std::uint16_t from_port, std::uint16_t to_port) {
    datagram.ip.destination = to;
    datagram.udp.source_port = from_port;
    datagram.udp.destination_port = to_port;
    Frame frame;
    datagram.emit(frame, payload);
    net->inject(2, frame);
  };
  constexpr std::uint16_t kPort = wire::kDefaultMrpUdpPort;
  send(TestNetwork::ip(0), 40002, kPort);
  send(TestNetwork::ip(0), kPort, TestNetwork::control_port(0));
  for (const Ipv4 to : {TestNetwork::ip(0), TestNetwork::kGroup}) {
    for (const std::uint16_t port : {kPort, std::uint16_t{40002}}) send(to, kPort, port);
  }
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kDropMrpForged), 6u);
}

}  // namespace
}  // namespace cepheus::fabric
