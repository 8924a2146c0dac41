#include "switch-emulator/engine/group/replication.h"

#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"
#include "wire/icrc.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

using wire::Opcode;
using wire::RoceHeaders;

RoceHeaders headers_of(const std::vector<std::uint8_t>& bytes) {
  const auto frame = Frame::from_bytes(bytes);
  EXPECT_TRUE(frame && wire::check_icrc(*frame));
  return *RoceHeaders::parse(*frame);
}

TEST(Replication, CopiesDataToEveryMemberButItsSource) {
  auto net = make_star(4);
  net->data(2, 0);
  EXPECT_EQ(net->inbox(0), Texts({"data 0"}));
  EXPECT_EQ(net->inbox(1), Texts({"data 0"}));
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->inbox(3), Texts({"data 0"}));
  EXPECT_EQ(net->count(Counter::kDataCopies), 3u);
}

TEST(Replication, RewritesEachCopyForItsMembersConnection) {
  auto net = make_star(3);
  net->data(0, 0);
  const RoceHeaders h = headers_of(net->frames(2).at(0));
  EXPECT_EQ(h.ip.source, TestNetwork::kGroup);
  EXPECT_EQ(h.ip.destination, TestNetwork::ip(2));
  EXPECT_EQ(h.bth.destination_qp, TestNetwork::qpn(2));
  EXPECT_EQ(h.ethernet.destination, wire::mac_for(TestNetwork::ip(2)));
  EXPECT_EQ(h.ethernet.source, net->config(0).mac);
  EXPECT_TRUE(h.bth.migration);
}

TEST(Replication, PatchesTheIcrcWithoutHidingADamagedPayload) {
  auto net = make_star(3, true, [](SwitchConfig& c) { c.check_icrc = false; });
  Frame frame = net->make_frame(0, net->headers_from(0, Opcode::kRcSendOnly, 0), 256);
  std::vector<std::uint8_t> bytes = wire::bytes_of(frame);
  bytes[frame.header_len + 100] ^= 0x10;
  SwitchOutput out;
  auto damaged = Frame::from_bytes(bytes, 1);
  net->sw(0).on_packet(net->now(), net->port_of(0), *damaged, out);
  ASSERT_EQ(out.emits.size(), 2u);
  EXPECT_FALSE(wire::check_icrc(out.emits[0].frame));
  EXPECT_NE(out.emits[0].frame.icrc, damaged->icrc);
}

TEST(Replication, LeavesADeferredIcrcDeferred) {
  auto net = make_star(3);
  Frame frame = net->make_frame(0, net->headers_from(0, Opcode::kRcSendOnly, 0), 256);
  frame.icrc_state = wire::Icrc::kDeferred;
  frame.ref = 7;
  SwitchOutput out;
  net->sw(0).on_packet(net->now(), net->port_of(0), frame, out);
  ASSERT_EQ(out.emits.size(), 2u);
  EXPECT_EQ(out.emits[0].frame.icrc_state, wire::Icrc::kDeferred);
  EXPECT_EQ(out.emits[0].frame.ref, 7u) << "copies share the payload";
  EXPECT_EQ(out.emits[0].frame.external, frame.external);
}

TEST(Replication, DropsGroupPacketsWithAWrongIcrc) {
  auto net = make_star(3);
  Frame frame = net->make_frame(0, net->headers_from(0, Opcode::kRcSendOnly, 0), 64);
  frame.icrc ^= 1;
  net->inject(0, frame);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropCorrupt), 1u);
}

TEST(Replication, SendsARepeatOnlyToPathsThatLackIt) {
  auto net = make_star_amid(4, 1);
  net->ack(1, 1);
  net->ack(2, 0);
  net->clear();
  net->data(0, 0);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(2), Texts());
  EXPECT_EQ(net->inbox(3), Texts({"data 0"}));
}

TEST(Replication, AnswersAnUnneededRepeatWithTheLostAggregate) {
  auto net = make_star_amid(3, 0);
  net->ack({1, 2}, 0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  net->clear();
  net->data(0, 0);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0"}));
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kLostAggregateAnswered), 1u);
}

TEST(Replication, DropsDataFarBeyondTheLastSentPacket) {
  auto net = make_star_amid(3, 0, [](SwitchConfig& c) { c.data_window = 100; });
  net->data(0, 101);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropDataWindow), 1u);
  net->data(0, 100);
  EXPECT_EQ(net->inbox(1), Texts({"data 100"}));
}

// Whatever the NIC's window: PSNs that are compared stay within half the circle.
TEST(Replication, StopsASourceThatDoesNotWaitForAcknowledgements) {
  constexpr std::int64_t kStep = 1 << 21;
  auto net = make_star(3, true, [](SwitchConfig& c) { c.data_window = kStep; });
  net->data(0, kStep - 1);
  net->data(0, 2 * kStep - 1);
  net->ack(1, 2 * kStep - 1);
  net->data(0, 2 * kStep);
  EXPECT_EQ(net->inbox(2).size(), 2u);
  EXPECT_EQ(net->count(Counter::kDropDataWindow), 1u);
  net->ack(2, 0);
  net->data(0, 2 * kStep);
  EXPECT_EQ(net->inbox(2).size(), 1u);
}

TEST(Replication, RefusesOperationsThatHaveOneTargetOnly) {
  auto net = make_star_amid(3, 0);
  // The NAK acknowledges all PSNs below it: PSN 0 is not acknowledged yet.
  for (const Opcode opcode :
       {Opcode::kRcReadRequest, Opcode::kRcFetchAdd, Opcode::kRcSendOnlyInvalidate}) {
    net->inject(0, net->make_frame(0, net->headers_from(0, opcode, 1)));
    EXPECT_EQ(net->inbox(0), Texts({"fatal 0 c1"})) << int(opcode);
  }
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropNotMulticastable), 3u);
}

TEST(Replication, RefusesAReadOfAMemberThatIsNotTheSource) {
  auto net = make_star(3);
  net->inject(1, net->make_frame(1, net->headers_from(1, Opcode::kRcReadRequest, 5)));
  EXPECT_EQ(net->inbox(1), Texts({"fatal 0 c1"}));
}

TEST(Replication, DropsPacketsForRealQueuePairs) {
  auto net = make_star(3);
  auto h = net->headers_from(0, Opcode::kRcSendOnly, 0);
  h.bth.destination_qp = Qpn(2);
  net->inject(0, net->make_frame(0, h, 8));
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->count(Counter::kDropMalformed), 1u);
}

TEST(Replication, DropsDataFromAPortOutsideTheGroup) {
  auto net = make_star(4, false);
  net->register_group(0, 1, {0, 1, 2});
  net->control(0, wire::MrpType::kActivate, 1);
  net->clear();
  net->data(3, 0);
  EXPECT_EQ(net->inbox(0), Texts());
  EXPECT_EQ(net->count(Counter::kDropNotMember), 1u);
  net->data(0, 0);
  EXPECT_EQ(net->inbox(3), Texts()) << "no packet of a group reaches a host outside it";
}

TEST(Replication, CountsACopyThatIsTooLongForItsPort) {
  auto net = make_star(3);
  net->sw(0).set_mtu(net->port_of(1), 100);
  net->data(0, 0);
  EXPECT_EQ(net->inbox(1), Texts());
  EXPECT_EQ(net->inbox(2), Texts({"data 0"}));
  EXPECT_EQ(net->count(Counter::kDropTooLong), 1u);
}

// Flow control asks before the switch handles the frame.
TEST(Replication, IsForeseenForDataOfAnActiveGroupOnly) {
  auto net = make_star(3, false);
  const auto group_of = [&](Opcode opcode) {
    return net->sw(0).group_of_data(net->make_frame(0, net->headers_from(0, opcode, 0)));
  };
  const auto copies_of_0 = [&] {
    std::vector<PortId> out{PortId(9)};
    net->sw(0).list_copies(TestNetwork::kGroup, net->port_of(0), out);
    return out;
  };
  net->register_group(0, 1);
  EXPECT_EQ(group_of(Opcode::kRcSendOnly), std::nullopt) << "no data before ACTIVATE";
  EXPECT_EQ(copies_of_0(), std::vector<PortId>());
  net->control(0, wire::MrpType::kActivate, 1);
  EXPECT_EQ(group_of(Opcode::kRcSendOnly), TestNetwork::kGroup);
  EXPECT_EQ(group_of(Opcode::kRcWriteMiddle), TestNetwork::kGroup);
  EXPECT_EQ(group_of(Opcode::kRcAcknowledge), std::nullopt) << "it goes to the source alone";
  EXPECT_EQ(group_of(Opcode::kRcReadRequest), std::nullopt) << "it is refused";
  EXPECT_EQ(copies_of_0(), std::vector<PortId>({net->port_of(1), net->port_of(2)}));
  net->set_port(0, net->port_of(1), false);
  EXPECT_EQ(copies_of_0(), std::vector<PortId>({net->port_of(2)}));
}

TEST(Replication, AcknowledgesTheOnlyMemberItself) {
  auto net = make_star(1);
  net->message(0, 0, 2);
  EXPECT_EQ(net->inbox(0), Texts({"ack 0", "ack 1", "ack 2"}));
}

}  // namespace
}  // namespace cepheus::fabric
