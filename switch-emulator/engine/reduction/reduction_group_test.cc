#include "switch-emulator/engine/reduction/reduction_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/reduction/test_members.h"
#include "wire/ecn.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using wire::MrpReduction;
using wire::MrpType;

TEST_F(Reduction, SendsEveryMemberTheResultOnceAllHaveContributed) {
  members_.contribute(0);
  members_.contribute(2);
  EXPECT_EQ(net_->inbox(0), Texts());
  members_.contribute(1);
  for (const std::size_t member : {0, 1, 2}) {
    EXPECT_EQ(net_->inbox(member), Texts({"ack 0", "data 0"})) << member;
  }
  EXPECT_EQ(net_->count(Counter::kReductionUnits), 1u);
}

TEST_F(Reduction, AcknowledgesLateIfOthersAreLate) {
  members_.contribute(0);
  net_->advance(999us);
  EXPECT_EQ(net_->inbox(0), Texts());
  net_->advance(1us);
  EXPECT_EQ(net_->inbox(0), Texts({"ack 0"}));
  members_.contribute(0);
  EXPECT_EQ(net_->inbox(0), Texts());
  members_.contribute(0);
  EXPECT_EQ(net_->inbox(0), Texts({"ack 2"})) << "a quarter of the window";
}

TEST_F(Reduction, AcknowledgesARepeatAtOnceAndAddsItOnce) {
  members_.contribute(0);
  members_.time_out(0);
  EXPECT_EQ(net_->inbox(0), Texts({"ack 0"}));
  members_.contribute(1);
  members_.time_out(0);
  EXPECT_EQ(net_->inbox(2), Texts()) << "member 2 has not contributed";
  EXPECT_EQ(net_->count(Counter::kReductionDuplicate), 2u);
}

TEST_F(Reduction, RequestsALostContributionOnce) {
  for (const Unit unit : {1, 2, 3}) members_.send(0, unit, kBarrier, {});
  EXPECT_EQ(net_->inbox(0), Texts({"nak 0"}));
  EXPECT_EQ(net_->count(Counter::kDropReductionGap), 3u);
}

TEST_F(Reduction, RepeatsALostResultUntilItIsAcknowledged) {
  all_contribute();
  members_.receive(1);
  members_.receive(2);
  net_->clear();
  net_->advance(Requester::kFirstWait);
  EXPECT_EQ(net_->inbox(0), Texts({"data 0"}));
  EXPECT_EQ(net_->inbox(1), Texts());
  net_->advance(2 * Requester::kFirstWait);
  members_.receive(0);
  EXPECT_EQ(members_.results(0), 1u);
  EXPECT_EQ(net_->count(Counter::kReductionRepeated), 2u);
  net_->advance(10s);
  EXPECT_EQ(net_->count(Counter::kReductionRepeated), 2u);
}

TEST_F(Reduction, RepeatsResultsForANakAndAfterAPause) {
  all_contribute();
  all_contribute();
  net_->clear();
  net_->nak(0, 0);
  EXPECT_EQ(net_->inbox(0), Texts({"data 0"}));
  net_->ack(0, 0);
  EXPECT_EQ(net_->inbox(0), Texts({"data 1"}));
  net_->rnr(1, 1, 12);  // 0.64 ms
  net_->nak(1, 1);
  net_->advance(639us);
  EXPECT_EQ(net_->inbox(1), Texts()) << "it waits, also for its NAK";
  net_->advance(1us);
  EXPECT_EQ(net_->inbox(1), Texts({"data 1"}));
}

TEST_F(Reduction, RequestsAcknowledgementsOfTheLastPacket) {
  const auto requested = [&] {
    std::vector<bool> of;
    for (const auto& bytes : net_->frames(0)) {
      const auto headers = wire::RoceHeaders::parse(*Frame::from_bytes(bytes));
      const bool is_result = headers->bth.opcode == wire::Opcode::kRcSendOnlyImm;
      if (is_result) of.push_back(headers->bth.ack_request);
    }
    net_->inbox(0);
    return of;
  };
  for (int unit = 0; unit < 5; ++unit) {
    members_.contribute(0);
    members_.contribute(1);
  }
  net_->clear();
  for (int unit = 0; unit < 5; ++unit) members_.contribute(2);
  EXPECT_THAT(requested(), Each(true)) << "each was the last";
  net_->nak(0, 0);
  EXPECT_EQ(requested(), std::vector<bool>({false, true})) << "half of them";
  net_->ack(0, 0);
  EXPECT_EQ(requested(), std::vector<bool>({false, true})) << "a quarter of the window, the last";
  net_->ack(0, 2);
  EXPECT_EQ(requested(), std::vector<bool>({true}));
}

// Each NAK acknowledges one result and requests the others; each pause is the shortest.
TEST_F(Reduction, SendsFewRepeatsToAMemberThatRequestsThemWithoutEnd) {
  for (int unit = 0; unit < 8; ++unit) all_contribute();
  for (const std::size_t member : {1, 2}) members_.receive(member);
  for (int unit = 0; unit < 8; ++unit) net_->nak(0, unit);
  EXPECT_LE(net_->count(Counter::kReductionRepeated), 12u);
  const std::uint64_t before = net_->count(Counter::kReductionRepeated);
  for (int n = 0; n < 100; ++n) {
    net_->rnr(0, 7, 1);
    net_->advance(10us);
  }
  EXPECT_LE(net_->count(Counter::kReductionRepeated) - before, 100u);
}

// All acknowledgements of results are lost, for ever.
TEST_F(Reduction, LearnsFromContributionsThatResultsHaveCome) {
  net_->inbox(0);
  for (Unit unit = 0; unit < 40; ++unit) {
    for (const std::size_t member : {0, 1, 2}) members_.send(member, unit, kBarrier, {});
    EXPECT_THAT(net_->inbox(2), Contains("data " + std::to_string(unit)));
    EXPECT_EQ(net_->count(Counter::kDropReductionBusy), 0u);
  }
  EXPECT_EQ(net_->view().reduction->results, 40u);
}

TEST_F(Reduction, RefusesContributionsBeyondTheCreditAndKeepsNothing) {
  for (Unit unit = 0; unit < 8; ++unit) EXPECT_TRUE(members_.contribute(0));
  EXPECT_FALSE(members_.contribute(0));
  net_->clear();
  members_.send(0, 8, kBarrier, {});
  members_.send(0, 9, kBarrier, {});
  EXPECT_EQ(net_->inbox(0), Texts({"rnr 8 t12"}));
  EXPECT_EQ(net_->count(Counter::kDropReductionBusy), 1u);
  members_.contribute(1);
  members_.contribute(2);
  net_->clear();
  members_.send(0, 8, kBarrier, {});
  net_->advance(1ms);
  EXPECT_EQ(net_->inbox(0), Texts({"ack 8"})) << "the result of unit 0 has given credit";
}

TEST_F(Reduction, DropsPacketsOfAnotherEpochOrUnit) {
  auto h = net_->headers_from(0, wire::Opcode::kRcSendOnlyImm, 0);
  for (const wire::ReductionImm imm : {wire::ReductionImm{0, 0, 2, 0}, {0, 0, 1, 1}}) {
    h.imm.value = imm.value();
    net_->inject(0, net_->make_frame(0, h));
  }
  h.imm.value = wire::ReductionImm{0, 0, 1, 0}.value();
  h.bth.destination_qp = Qpn(2);
  net_->inject(0, net_->make_frame(0, h));
  EXPECT_EQ(net_->count(Counter::kDropMalformed), 3u);
  members_.send(0, Unit{0} - 1, kBarrier, {});
  EXPECT_EQ(net_->count(Counter::kDropMalformed), 4u) << "before the first unit";
  net_->ack(0, 0);
  EXPECT_EQ(net_->count(Counter::kDropFeedbackUnsent), 1u);
}

// A TOS that is in no packet of the group that is stored.
TEST_F(Reduction, HasTheTrafficClassOfWhatIsStored) {
  net_->tos = 104;
  all_contribute();
  net_->tos = 32;
  members_.send(2, 9, kBarrier, {});
  net_->clear();
  net_->tos = 0;
  net_->advance(Requester::kFirstWait);
  ASSERT_FALSE(net_->frames(0).empty());
  EXPECT_EQ(net_->frames(0).back()[wire::kIpOffset + 1], 104);
}

TEST_F(Reduction, AnswersNoRequestOfAnotherService) {
  net_->request(1, wire::Opcode::kUcSendOnly, 0);
  EXPECT_EQ(net_->inbox(1), Texts());
  EXPECT_EQ(net_->count(Counter::kDropNotMulticastable), 1u);
}

TEST_F(Reduction, ShowsItsUnitsAndLateMembers) {
  all_contribute();
  members_.contribute(0);
  members_.contribute(0);
  const GroupView view = net_->view();
  ASSERT_TRUE(view.reduction);
  EXPECT_TRUE(view.reduction->is_root);
  EXPECT_EQ(view.reduction->window, 8);
  EXPECT_EQ(view.reduction->newest, 3u);
  EXPECT_EQ(view.reduction->results, 1u);
  EXPECT_EQ(net_->path_view(0).lag, 0u);
  EXPECT_EQ(net_->path_view(1).lag, 2u);
  EXPECT_GE(view.table_bytes, 2u * 8 * 4096);
}

TEST(ReductionPathMtu, LimitsContributions) {
  auto net = make_star(2, false);
  net->reduction = MrpReduction{MrpReduction::kValues, 4096, 8};
  net->register_group(0, 1, {}, wire::MrpHeader::kLossEnds);
  net->confirm(1, MrpType::kRegister);
  wire::MrpMessage connect = TestNetwork::message_about(MrpType::kConnect, {});
  connect.header.flags = 1;
  connect.path = wire::MrpPath{1024, 0};
  net->send_message(0, connect);
  net->confirm(1, MrpType::kConnect);
  net->control(0, MrpType::kActivate, 1);
  net->clear();
  auto h = net->headers_from(1, wire::Opcode::kRcSendOnlyImm, 0);
  h.imm.value = wire::ReductionImm{1, 0, 1, 0}.value();
  net->inject(1, net->make_frame(1, h, 1028));
  EXPECT_EQ(net->inbox(1), Texts({"fatal 0 c1"}));
  net->inject(1, net->make_frame(1, h, 1024));
  net->advance(1ms);
  EXPECT_EQ(net->inbox(1), Texts({"ack 0"}));
}

TEST(ReductionRegister, IsRefusedWithAReason) {
  const MrpReduction good{MrpReduction::kValues, 4096, 64};
  const auto refusal = [](const MrpReduction& reduction, std::uint16_t flags, std::size_t memory) {
    return ReductionGroup::refusal({flags, reduction, memory});
  };
  constexpr std::uint16_t kEnds = wire::MrpHeader::kLossEnds;
  constexpr std::size_t kPlenty = 1 << 30;
  EXPECT_EQ(refusal(good, kEnds, kPlenty), wire::MrpReject::kNone);
  EXPECT_EQ(refusal(good, 0, kPlenty), wire::MrpReject::kMalformed) << "with evictions";
  EXPECT_EQ(refusal({1, 4096, 64}, kEnds, kPlenty), wire::MrpReject::kNotServed);
  EXPECT_EQ(refusal({3, 4096, 64}, kEnds, kPlenty), wire::MrpReject::kNone);
  EXPECT_EQ(refusal({4, 4096, 64}, kEnds, kPlenty), wire::MrpReject::kNotServed);
  EXPECT_EQ(refusal({2, 4096, 63}, kEnds, kPlenty), wire::MrpReject::kMalformed);
  EXPECT_EQ(refusal({2, 12, 64}, kEnds, kPlenty), wire::MrpReject::kMalformed) << "divides values";
  EXPECT_EQ(refusal(good, kEnds, 2 * 64 * 4096), wire::MrpReject::kNoMemory);
  EXPECT_EQ(refusal(good, kEnds, UnitSlots::bytes_for(good, 2)), wire::MrpReject::kNone);
}

TEST(ReductionRegister, ReservesItsMemoryUntilTheGroupEnds) {
  auto net = make_star(2, false, [](SwitchConfig& c) { c.reduction_memory = 100'000; });
  TestMembers members(*net, 2, 8, 0);  // 64 KiB and more
  net->epoch = 2;
  net->reduction->window = 4;
  net->register_group(1, 2);
  EXPECT_THAT(net->inbox(1), ElementsAre(HasSubstr("group id in use")));
  const auto bytes = TestNetwork::control_bytes(
      1, MrpType::kRegister, 1, std::vector<wire::MrpMember>{net->member(0), net->member(1)}, 1, 0,
      1, nullptr, wire::MrpHeader::kLossEnds, MrpReduction{MrpReduction::kValues, 4096, 8},
      McstId(198, 18, 0, 8));
  net->inject_bytes(1, bytes);
  EXPECT_EQ(net->inbox(1), Texts({"reject e1 no memory for another reduction group"}));
  net->epoch = 2;
  net->register_group(0, 2, {}, wire::MrpHeader::kLossEnds);
  EXPECT_THAT(net->inbox(1), ElementsAre(HasSubstr("register e2"))) << "it replaces the first one";
  net->control(0, MrpType::kUnregister, 2);
  net->clear();
  net->inject_bytes(1, bytes);
  EXPECT_THAT(net->inbox(0), ElementsAre(HasSubstr("register e1")));
}

TEST(ReductionRegister, LeavesMemoryToOtherLeaders) {
  // Of four groups.
  const std::size_t bytes = UnitSlots::bytes_for({MrpReduction::kValues, 4096, 8}, 2);
  auto net = make_star(2, false, [&](SwitchConfig& c) { c.reduction_memory = 4 * bytes; });
  const auto register_by = [&](std::size_t leader, std::uint8_t number) {
    net->clear();
    net->inject_bytes(
        leader, TestNetwork::control_bytes(
                    leader, MrpType::kRegister, 1,
                    std::vector<wire::MrpMember>{net->member(0), net->member(1)}, 1, 0, 1, nullptr,
                    wire::MrpHeader::kLossEnds, MrpReduction{MrpReduction::kValues, 4096, 8},
                    McstId(198, 18, 0, number)));
    return net->inbox(1 - leader).size();
  };
  EXPECT_EQ(register_by(0, 1), 1u);
  EXPECT_EQ(register_by(0, 2), 1u);
  EXPECT_EQ(register_by(0, 3), 1u);
  EXPECT_EQ(register_by(0, 4), 0u) << "twice what is free is one host's share";
  EXPECT_EQ(register_by(1, 5), 1u);
}

TEST(ReductionRegister, OfOneListNamesOneKindOfGroup) {
  auto net = make_star(2, false);
  net->reduction = MrpReduction{MrpReduction::kValues, 4096, 8};
  net->register_group(0, 1, {}, wire::MrpHeader::kLossEnds);
  net->clear();
  net->reduction->window = 4;
  net->register_group(0, 1, {}, wire::MrpHeader::kLossEnds);
  EXPECT_THAT(net->inbox(0), ElementsAre(HasSubstr("reject e1 malformed")));
  net->reduction.reset();
  net->register_group(0, 1, {}, wire::MrpHeader::kLossEnds);
  EXPECT_THAT(net->inbox(0), ElementsAre(HasSubstr("reject e1 malformed")));
}

// With check_icrc off nobody else checks it.
TEST(ReductionIcrc, IsCheckedBeforeAContributionIsAdded) {
  auto net = make_star(2, false, [](SwitchConfig& c) { c.check_icrc = false; });
  TestMembers members(*net, 2, 8, 8);
  auto h = net->headers_from(0, wire::Opcode::kRcSendOnlyImm, 0);
  h.imm.value = wire::ReductionImm{1, 0, 1, 0}.value();
  Frame frame = net->make_frame(0, h, 8);
  frame.icrc ^= 1;
  net->inject(0, frame);
  EXPECT_EQ(net->count(Counter::kDropCorrupt), 1u);
  members.contribute(0);
  members.contribute(1);
  members.receive_all();
  EXPECT_TRUE(members.is_done(0, 1));
}

// A wrong bit may make any of these of an honest member's contribution.
TEST(ReductionIcrc, OfADamagedPacketIsCheckedBeforeAnythingIsAnswered) {
  auto net = make_star(2, false, [](SwitchConfig& c) { c.check_icrc = false; });
  TestMembers members(*net, 2, 8, 8);
  members.contribute(0);
  members.contribute(1);
  members.receive_all();
  net->advance(1ms);
  net->set_port(0, net->port_of(1), false);
  net->set_port(0, net->port_of(1), true);
  net->clear();
  const auto inject_damaged = [&](wire::Opcode opcode, std::int64_t unit, std::uint8_t operation) {
    auto h = net->headers_from(1, opcode, unit);
    h.imm.value = wire::ReductionImm{operation, 0, 1, static_cast<std::uint16_t>(unit)}.value();
    h.ip.tos = static_cast<std::uint8_t>(wire::Ecn::kExperienced);
    Frame frame = net->make_frame(1, h, 8);
    frame.icrc ^= 1;
    net->inject(1, frame);
  };
  inject_damaged(wire::Opcode::kRcSendOnlyImm, 1, 2);
  EXPECT_EQ(net->inbox(1), Texts()) << "no refusal of an operation";
  inject_damaged(wire::Opcode::kRcSendOnly, 1, 1);
  EXPECT_EQ(net->inbox(1), Texts()) << "no refusal of an opcode";
  inject_damaged(wire::Opcode::kRcSendOnlyImm, 3, 1);
  EXPECT_EQ(net->inbox(1), Texts()) << "no NAK";
  inject_damaged(wire::Opcode::kRcSendOnlyImm, 0, 1);
  EXPECT_EQ(net->inbox(1), Texts()) << "no acknowledgement of a repeat";
  EXPECT_EQ(net->count(Counter::kDropCorrupt), 4u);
  net->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net->last_report(0).flags, wire::kMemberDown) << "its program is not back";
}

TEST(ReductionMemory, IsThatOfTwoPoolsAndThePaths) {
  auto few = make_star(2, false), more = make_star(5, false);
  TestMembers two(*few, 2, 64, 0), five(*more, 5, 64, 0);
  const auto bytes = [](const TestNetwork& net) {
    return net.view().table_bytes + net.view().beside_bytes;
  };
  EXPECT_GE(bytes(*few), 2u * 64 * 4096);
  EXPECT_LE(bytes(*more), bytes(*few) + 3000) << "a path has custody, not units";
  const TableBytes expected =
      Switch::table_bytes({.ports = 5, .paths = 5, .reduction = more->reduction});
  EXPECT_EQ(TableBytes::sum(expected.table), more->view().table_bytes);
}

TEST(ReductionMemory, WithoutAPayloadAResultIsRepeated) {
  auto net = make_star(2, false);
  TestMembers members(*net, 2, 8, 1000);
  net->payloads.has_space = false;
  members.contribute(0);
  members.contribute(1);
  members.receive_all();
  EXPECT_EQ(members.results(0), 0u);
  EXPECT_EQ(net->count(Counter::kDropNoPayload), 2u);
  net->payloads.has_space = true;
  net->advance(Requester::kFirstWait);
  members.receive_all();
  EXPECT_EQ(members.results(0), 1u);
  EXPECT_EQ(members.results(1), 1u);
}

}  // namespace
}  // namespace cepheus::fabric
