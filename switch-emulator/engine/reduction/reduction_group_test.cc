#include "switch-emulator/engine/reduction/reduction_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/reduction/test_members.h"
#include "wire/icrc.h"
#include "wire/reduction.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using wire::MrpReduction;
using wire::MrpType;

constexpr std::uint8_t kBarrier = 0, kOr = 0x10;

// One switch with three members and windows of 8 units.
class Reduction : public testing::Test {
 protected:
  void all_contribute() {
    for (const std::size_t member : {0, 1, 2}) EXPECT_TRUE(members_.contribute(member));
  }

  std::unique_ptr<TestNetwork> net_ = make_star(3, false);
  TestMembers members_{*net_, 3, 8, 0};
};

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
  EXPECT_EQ(net_->inbox(0), Texts({"data 0", "data 1"}));
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
  EXPECT_EQ(requested(), std::vector<bool>({false, true, false, true, true}));
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

TEST_F(Reduction, WaitsForALateMemberForHoursAndProbesIt) {
  members_.contribute(0);
  members_.contribute(1);
  net_->advance(1ms);
  net_->clear();
  net_->advance(999ms);
  EXPECT_EQ(net_->inbox(2), Texts({"data -1"})) << "before the first result there is none";
  for (int second = 0; second < 4000; ++second) {
    net_->ack(2, -1);  // its device does this alone
    net_->control(0, MrpType::kRefresh, 1);
    net_->advance(1s);
    ASSERT_EQ(net_->inbox(2), Texts({"data -1"}));
  }
  net_->clear();
  net_->ack(2, -1);
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->inbox(0), Texts({"report e1 10.0.0.3"}));
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberLate);
  members_.contribute(2);
  members_.receive_all();
  for (const std::size_t member : {0, 1, 2}) EXPECT_EQ(members_.results(member), 1u);
}

TEST_F(Reduction, AgesWithoutItsLeaderThoughADeviceAnswersProbes) {
  members_.contribute(0);
  const wire::Duration age = net_->config(0).age;
  for (wire::Duration time{}; time < age; time += 1s) {
    net_->ack(1, -1);
    net_->advance(1s);
  }
  EXPECT_EQ(net_->sw(0).group_count(), 0u);
}

TEST_F(Reduction, ProbesASilentMemberLessOften) {
  members_.contribute(0);
  net_->advance(3s);
  EXPECT_EQ(net_->inbox(1).size(), 3u);
  net_->advance(100s);
  EXPECT_LE(net_->inbox(1).size(), 7u);
  net_->ack(1, -1);
  net_->advance(2s);
  EXPECT_EQ(net_->inbox(1).size(), 2u) << "it lives";
}

TEST_F(Reduction, AMemberOwesThatLeavesTwoProbesUnanswered) {
  all_contribute();
  members_.receive_all();
  members_.contribute(0);
  net_->clear();
  net_->advance(2s);
  EXPECT_EQ(net_->inbox(1), Texts({"data 0", "data 0"})) << "the newest result";
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberLate) << "an answer may be under way";
  net_->ack(2, 0);
  net_->advance(1s);
  net_->clear();
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->inbox(0), Texts({"report e1 10.0.0.2 10.0.0.3"}));
  EXPECT_EQ(net_->last_report(0, 0).flags, wire::kMemberOwes) << "silent members come first";
  EXPECT_EQ(net_->last_report(0, 1).flags, wire::kMemberLate);
}

TEST_F(Reduction, AMemberOwesThatLeavesRepeatsUnanswered) {
  all_contribute();
  members_.receive(0);
  members_.receive(1);
  net_->advance(1s);
  net_->clear();
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->inbox(0), Texts({"report e1 10.0.0.3"}));
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberOwes);
}

TEST_F(Reduction, ProbesMembersThatOthersElsewhereWaitFor) {
  net_->control(0, MrpType::kQuery, 1);
  net_->clear();
  net_->advance(1s);
  for (const std::size_t member : {0, 1, 2}) EXPECT_EQ(net_->inbox(member), Texts({"data -1"}));
  net_->advance(10s);
  EXPECT_EQ(net_->inbox(0).size(), 2u) << "no QUERY came again";
}

TEST_F(Reduction, EndsWithBothNamesIfMembersContributeDifferentThings) {
  members_.send(1, 0, kBarrier, {});
  members_.send(2, 0, kOr, Bytes(5, 1));
  EXPECT_EQ(net_->inbox(0),
            Texts({"reject e1 members that reduce different things 10.0.0.2 10.0.0.3"}));
  EXPECT_EQ(net_->last_report(0, 0).token, 0u);
  EXPECT_EQ(net_->last_report(0, 1).flags, kOr);
  EXPECT_EQ(net_->last_report(0, 1).token, 5u);
  members_.send(0, 0, kBarrier, {});
  EXPECT_EQ(net_->inbox(0), Texts()) << "nothing completes";
  net_->advance(1s);
  members_.send(0, 0, kBarrier, {});
  EXPECT_THAT(net_->inbox(0), ElementsAre(HasSubstr("reject"))) << "the leader may have missed it";
}

TEST_F(Reduction, EndsWithTheNameOfAMemberThatRefusesAResult) {
  all_contribute();
  net_->clear();
  net_->feedback(2, 0, wire::AckKind::kNak, 3);
  EXPECT_EQ(net_->inbox(0), Texts({"reject e1 a result that a member's device refused 10.0.0.3"}));
  all_contribute();
  EXPECT_EQ(net_->inbox(1), Texts());
}

TEST_F(Reduction, RefusesWhatItCannotAddAndAcknowledgesWhatItHas) {
  members_.contribute(0);
  members_.send(0, 1, 0x20, Bytes(4, 1));
  EXPECT_EQ(net_->inbox(0), Texts({"fatal 1 c1"})) << "no such operation";
  members_.send(1, 0, 0x11, Bytes(4, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "no such type";
  members_.send(1, 0, kBarrier, Bytes(4, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "a barrier has no bytes";
  members_.send(1, 0, kOr, Bytes(4097, 1));
  EXPECT_EQ(net_->inbox(1), Texts({"fatal 0 c1"})) << "longer than a unit";
  net_->write(2, 0, 1, 0, 64);
  net_->data(2, 0);
  EXPECT_EQ(net_->inbox(2), Texts({"fatal 0 c1", "fatal 0 c1"})) << "no immediate data";
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

TEST_F(Reduction, CompletesNothingWithoutAnEvictedMember) {
  members_.contribute(0);
  members_.contribute(1);
  net_->control(0, MrpType::kEvict, 1, {net_->member(2)});
  net_->advance(5ms);
  members_.contribute(1);
  EXPECT_EQ(net_->count(Counter::kReductionUnits), 0u);
  EXPECT_EQ(net_->count(Counter::kDropReductionFailed), 1u);
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

TEST(ReductionRegister, IsRefusedWithAReason) {
  const MrpReduction good{MrpReduction::kGather, 4096, 64};
  const auto refusal = [](const MrpReduction& reduction, std::uint16_t flags, std::size_t memory) {
    return ReductionGroup::refusal({flags, reduction, memory});
  };
  constexpr std::uint16_t kEnds = wire::MrpHeader::kLossEnds;
  constexpr std::size_t kPlenty = 1 << 30;
  EXPECT_EQ(refusal(good, kEnds, kPlenty), wire::MrpReject::kNone);
  EXPECT_EQ(refusal(good, 0, kPlenty), wire::MrpReject::kMalformed) << "with evictions";
  EXPECT_EQ(refusal({2, 4096, 64}, kEnds, kPlenty), wire::MrpReject::kNotServed);
  EXPECT_EQ(refusal({1, 4096, 63}, kEnds, kPlenty), wire::MrpReject::kMalformed);
  EXPECT_EQ(refusal(good, kEnds, 2 * 64 * 4096), wire::MrpReject::kNoMemory);
  EXPECT_EQ(refusal(good, kEnds, UnitSlots::bytes_for(good)), wire::MrpReject::kNone);
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
      1, nullptr, wire::MrpHeader::kLossEnds, MrpReduction{1, 4096, 8}, McstId(198, 18, 0, 8));
  net->inject_bytes(1, bytes);
  EXPECT_EQ(net->inbox(1), Texts({"reject e1 no memory for another reduction group"}));
  net->control(0, MrpType::kUnregister, 1);
  net->clear();
  net->inject_bytes(1, bytes);
  EXPECT_THAT(net->inbox(0), ElementsAre(HasSubstr("register e1")));
}

// Units of `bytes` bytes: inside a frame, and beside it.
class Gather : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, Gather, testing::Values(0, 1, 8, 44, 45, 101, 4095, 4096));

TEST_P(Gather, BringsTheBlocksOfAllTogether) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 4, GetParam());
  for (Unit unit = 0; unit < 30; ++unit) {
    for (std::size_t m = 0; m < 4; ++m) ASSERT_TRUE(members.contribute((m + unit) % 4));
    members.receive_all();
    for (std::size_t m = 0; m < 4; ++m) ASSERT_TRUE(members.is_done(m, unit + 1)) << unit;
  }
  EXPECT_EQ(net->payloads.in_use(), 0u);
  net->advance(5ms);
  EXPECT_EQ(net->count(Counter::kReductionRepeated, 0), 0u);
}

TEST(ReductionTree, PassesOnePartialUpAndOneResultDown) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 8);
  Texts trunk;
  net->lose = [&](std::size_t from, std::size_t, const std::string& text) {
    trunk.push_back(std::to_string(from) + " " + text);
    return false;
  };
  for (const std::size_t m : {2, 0, 1, 3}) members.contribute(m);
  EXPECT_EQ(trunk, Texts({"1 data 0", "0 data 0"})) << "the result acknowledges the partial one";
  EXPECT_FALSE(net->view(1).reduction->is_root);
  trunk.clear();
  net->advance(1ms);
  EXPECT_EQ(trunk, Texts({"1 ack 0"}));
}

// The first packet of one kind on the trunk is lost.
class LostOnATrunk : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, LostOnATrunk,
                         testing::Values("0 data 1", "1 data 1", "0 ack 1", "1 ack 1", "1 data 0",
                                         "0 data 0", "1 ack 3"));

TEST_P(LostOnATrunk, IsRepeated) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 4, 8);
  bool is_lost = false;
  net->lose = [&](std::size_t from, std::size_t, const std::string& text) {
    return std::to_string(from) + " " + text == GetParam() && !std::exchange(is_lost, true);
  };
  constexpr Unit kUnits = 10;
  for (int round = 0; round < 100; ++round) {
    for (std::size_t m = 0; m < 4; ++m) {
      if (members.contributed(m) < kUnits) members.contribute(m);
    }
    members.receive_all();
    net->advance(40ms);
  }
  for (std::size_t m = 0; m < 4; ++m) EXPECT_TRUE(members.is_done(m, kUnits));
  net->advance(10s);
  EXPECT_EQ(net->view(1).reduction->results, kUnits);
}

TEST(ReductionTree, NamesOneMemberBehindATrunkThatDiffers) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 0);
  for (const std::size_t m : {2, 3}) members.send(m, 0, kOr, Bytes(8, 1));
  members.send(1, 0, kBarrier, {});
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 members that reduce different things 10.0.0.3 10.0.0.2"}));
}

TEST(ReductionTree, PassesARejectOfALeafOnToTheLeader) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 0);
  members.send(2, 0, kOr, Bytes(8, 1));
  members.send(3, 0, kBarrier, {});
  EXPECT_EQ(net->inbox(0),
            Texts({"reject e1 members that reduce different things 10.0.0.3 10.0.0.4"}));
}

TEST(ReductionTree, DropsPacketsThatGoTheWrongWayOrAreOfAnotherEpoch) {
  auto net = make_pair_of_switches(false);
  TestMembers members(*net, 4, 8, 0);
  wire::RoceHeaders partial;
  net->on_trunk = [&](std::size_t from, std::size_t, const wire::RoceHeaders& h) {
    if (from == 1) partial = h;
  };
  members.contribute(2);
  members.contribute(3);
  ASSERT_EQ(partial.ip.source, net->sw(1).config().address);
  ASSERT_EQ(partial.bth.destination_qp, Qpn(1));
  const auto inject = [&](wire::RoceHeaders h, std::size_t at, std::size_t from) {
    const Frame frame = net->make_frame(0, h);
    std::array<std::uint8_t, 256> bytes;
    const std::size_t size = frame.to_bytes(bytes);
    net->inject_at(at, net->port_between(at, from), {bytes.begin(), bytes.begin() + size});
  };
  auto older = partial;
  older.bth.destination_qp = Qpn(7);
  inject(older, 0, 1);
  auto down = partial;
  std::swap(down.ip.source, down.ip.destination);
  inject(down, 0, 1);
  EXPECT_EQ(net->count(Counter::kDropMalformed, 0), 2u);
  // A result before its partial result: of unit 1.
  down.bth.psn = net->start_psn() + 1;
  down.imm.value = wire::ReductionImm{0, 0, 1, 1}.value();
  inject(down, 1, 0);
  EXPECT_EQ(net->count(Counter::kDropReductionGap, 1), 1u);
  EXPECT_EQ(net->view(0).reduction->newest, 1u);
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
