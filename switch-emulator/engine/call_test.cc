#include "switch-emulator/engine/call.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;

// One timer call ages both groups.
TEST(Call, CountsATableThatAgesForNoPort) {
  auto net = make_star(3, false);
  for (const std::uint8_t leader : {0, 1}) {
    auto message = TestNetwork::message_about(wire::MrpType::kRegister,
                                              {net->member(0), net->member(1), net->member(2)});
    message.header.mcst_id = McstId(198, 18, 1, leader);
    net->send_message(leader, message);
  }
  ASSERT_EQ(net->sw(0).group_count(), 2u);
  net->advance(1min);
  ASSERT_EQ(net->sw(0).group_count(), 0u);
  EXPECT_EQ(net->count(Counter::kStaleTableAged), 2u);
  EXPECT_EQ(net->sw(0).counters().of(PortId(), Counter::kStaleTableAged), 2u);
}

TEST(Call, CountsBytesOfTheFramesPortAndOfEachCopysPort) {
  auto net = make_star(3);
  const auto bytes = [&](std::size_t host, Counter c) {
    return net->sw(0).counters().of(net->port_of(host), c);
  };
  const Frame frame = net->make_frame(1, net->headers_from(1, wire::Opcode::kRcSendOnly, 0), 64);
  const std::uint64_t received = bytes(1, Counter::kRxBytes);
  const std::uint64_t sent = bytes(2, Counter::kTxBytes);
  net->inject(1, frame);
  EXPECT_EQ(bytes(1, Counter::kRxBytes) - received, frame.size());
  EXPECT_EQ(bytes(2, Counter::kTxBytes) - sent, frame.size());
}

TEST(Call, ChargesACopyAndAnAnswerToThePortOfTheirFrame) {
  auto net = make_star(3);
  SwitchOutput out;
  net->sw(0).on_packet(net->now(), net->port_of(1),
                       net->make_frame(1, net->headers_from(1, wire::Opcode::kRcSendOnly, 0)), out);
  ASSERT_EQ(out.emits.size(), 2u);
  EXPECT_EQ(out.emits[0].origin, net->port_of(1));
  EXPECT_EQ(out.emits[1].origin, net->port_of(1));
  out.clear();
  for (const std::size_t host : {0, 2}) {
    const auto ack = net->headers_from(host, wire::Opcode::kRcAcknowledge, 0);
    net->sw(0).on_packet(net->now(), net->port_of(host), net->make_frame(host, ack), out);
  }
  ASSERT_EQ(out.emits.size(), 1u) << "one ACK to the source, since all have it";
  EXPECT_EQ(out.emits[0].origin, net->port_of(2));
}

TEST(Call, ChargesAFrameThatAGateLetsThroughToItsOwnPort) {
  auto net = make_star_amid(3, 0);
  net->ack(1, 0);
  net->data(1, 0);  // waits until host 2 has the first message
  SwitchOutput out;
  const auto ack = net->headers_from(2, wire::Opcode::kRcAcknowledge, 0);
  net->sw(0).on_packet(net->now(), net->port_of(2), net->make_frame(2, ack), out);
  ASSERT_EQ(out.emits.size(), 3u);
  EXPECT_EQ(out.emits[0].origin, net->port_of(2)) << "the ACK to the old source";
  EXPECT_EQ(out.emits[1].origin, net->port_of(1));
  EXPECT_EQ(out.emits[2].origin, net->port_of(1));
}

TEST(Call, ChargesTheSwitchsOwnFramesToNoHost) {
  auto net = make_star(3);
  SwitchOutput out;
  net->sw(0).on_port_down(net->now(), net->port_of(2), out);
  ASSERT_EQ(out.emits.size(), 1u) << "a REPORT to the leader";
  EXPECT_EQ(out.emits[0].origin, PortId());
  out.clear();
  net->sw(0).on_timer(net->now() + 1h, out);
  ASSERT_FALSE(out.emits.empty()) << "UNREGISTER of an unused group";
  for (const Emit& emit : out.emits) EXPECT_EQ(emit.origin, PortId());
}

}  // namespace
}  // namespace cepheus::fabric
