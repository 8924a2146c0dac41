// Members of a reduction group that are late, silent, lost, or do something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/reduction/reduction_group.h"
#include "switch-emulator/engine/reduction/test_members.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using wire::MrpType;

TEST_F(Reduction, WaitsForALateMemberForHoursAndProbesIt) {
  members_.contribute(0);
  members_.contribute(1);
  net_->advance(1ms);
  net_->clear();
  net_->advance(999ms);
  EXPECT_EQ(net_->inbox(2), Texts({"data -1"})) << "before the first result there is none";
  for (int second = 0; second < 4000; ++second) {
    // Its device does this alone. rdma_rxe has no PSN for it yet.
    net_->ack(2, second < 2000 ? -1 : 1000);
    net_->control(0, MrpType::kRefresh, 1);
    net_->advance(1s);
    ASSERT_EQ(net_->inbox(2), Texts({"data -1"}));
  }
  net_->clear();
  net_->ack(2, 1000);
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->inbox(0), Texts({"report e1 10.0.0.3"}));
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberLate);
  members_.contribute(2);
  members_.receive_all();
  for (const std::size_t member : {0, 1, 2}) EXPECT_EQ(members_.results(member), 1u);
}

TEST_F(Reduction, ShowsWhichMembersAreLateAndSinceWhen) {
  all_contribute();
  members_.receive_all();
  EXPECT_FALSE(net_->view().reduction->waits_since);
  net_->advance(5ms);
  const wire::Instant first = net_->now();
  members_.contribute(0);
  net_->advance(20ms);
  members_.contribute(1);
  members_.contribute(1);
  const GroupView view = net_->view();
  EXPECT_EQ(view.reduction->waits_since, first);
  ASSERT_TRUE(net_->path_view(0).late);
  EXPECT_EQ(net_->path_view(0).late->unit, 2u);
  EXPECT_EQ(net_->path_view(0).late->since, first + 20ms);
  EXPECT_FALSE(net_->path_view(1).late);
  ASSERT_TRUE(net_->path_view(2).late);
  EXPECT_EQ(net_->path_view(2).late->unit, 1u);
  EXPECT_EQ(net_->path_view(2).late->since, first);
  members_.contribute(2);
  EXPECT_EQ(net_->path_view(2).late->unit, 2u);
  EXPECT_EQ(net_->view().reduction->waits_since, first + 20ms);
}

TEST_F(Reduction, NobodyIsLateOnceItHasFailed) {
  members_.send(1, 0, kBarrier, {});
  members_.send(2, 0, kOr, Bytes(5, 1));
  EXPECT_EQ(net_->view().reduction->failure, "members that reduce different things");
  EXPECT_FALSE(net_->path_view(0).late);
  EXPECT_FALSE(net_->view().reduction->waits_since);
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

TEST_F(Reduction, AMemberOwesThatLeavesTwoRepeatsUnanswered) {
  all_contribute();
  members_.receive(0);
  members_.receive(1);
  net_->clear();
  const auto flags_after_repeats = [&](std::size_t repeats) {
    for (int ms = 0; ms < 1000 && net_->frames(2).size() < repeats; ++ms) net_->advance(1ms);
    EXPECT_EQ(net_->frames(2).size(), repeats);
    net_->control(0, MrpType::kQuery, 1);
    EXPECT_EQ(net_->inbox(0), Texts({"report e1 10.0.0.3"}));
    return net_->last_report(0).flags;
  };
  EXPECT_EQ(flags_after_repeats(2), wire::kMemberLate) << "the second has just been sent";
  EXPECT_EQ(flags_after_repeats(3), wire::kMemberOwes);
}

TEST_F(Reduction, ProbesMembersThatOthersElsewhereWaitFor) {
  net_->control(0, MrpType::kQuery, 1);
  net_->clear();
  net_->advance(1s);
  for (const std::size_t member : {0, 1, 2}) EXPECT_EQ(net_->inbox(member), Texts({"data -1"}));
  net_->advance(10s);
  EXPECT_EQ(net_->inbox(0).size(), 2u) << "no QUERY came again";
}

// The first QUERY was about a unit that has completed since.
TEST_F(Reduction, ProbesNobodyForAWaitThatIsOver) {
  net_->control(0, MrpType::kQuery, 1);
  net_->advance(500ms);
  all_contribute();
  members_.receive_all();
  net_->advance(200ms);
  net_->control(0, MrpType::kQuery, 1);
  net_->clear();
  net_->advance(1s - 1us);
  EXPECT_EQ(net_->inbox(1), Texts());
  net_->advance(1us);
  EXPECT_EQ(net_->inbox(1), Texts({"data 0"}));
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

TEST_F(Reduction, CompletesNothingWithoutAnEvictedMember) {
  members_.contribute(0);
  members_.contribute(1);
  net_->control(0, MrpType::kEvict, 1, {net_->member(2)});
  net_->advance(5ms);
  members_.contribute(1);
  EXPECT_EQ(net_->count(Counter::kReductionUnits), 0u);
  EXPECT_EQ(net_->count(Counter::kDropReductionFailed), 1u);
  EXPECT_EQ(net_->view().reduction->failure, "a member was evicted");
}

// Its device is asked as often as the leader judges by its silence.
TEST_F(Reduction, ProbesASilentMemberEachSecondWhileTheLeaderQueries) {
  members_.contribute(0);
  net_->advance(19s);
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberOwes);
  net_->clear();
  net_->advance(1s);
  EXPECT_FALSE(net_->inbox(1).empty());
  net_->ack(1, -1);
  net_->ack(2, -1);
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberLate);
}

// Its repeats are as far apart as a NIC's, unless the leader judges by its silence.
TEST_F(Reduction, RepeatsAResultToASilentMemberEachSecondWhileTheLeaderQueries) {
  all_contribute();
  members_.receive(0);
  members_.receive(1);
  net_->advance(19s);
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberOwes);
  net_->advance(1us);
  for (int second = 0; second < 5; ++second) {
    net_->clear();
    for (int quarter = 0; quarter < 4; ++quarter) {
      net_->control(0, MrpType::kQuery, 1);
      net_->advance(250ms);
    }
    ASSERT_EQ(net_->inbox(2), Texts({"data 0"})) << second;
  }
  net_->ack(2, 0);
  net_->clear();
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_EQ(net_->last_report(0).flags, wire::kMemberLate) << "members elsewhere may wait";
}

// The time of its first probe has passed while a result was under way to it.
TEST_F(Reduction, ProbesALateMemberOnceItHasAcknowledgedTheResultBefore) {
  all_contribute();
  members_.receive(0);
  members_.receive(1);
  net_->advance(10s);
  members_.contribute(0);
  members_.contribute(1);
  net_->advance(1s);
  net_->ack(2, 0);
  net_->clear();
  net_->advance(1s - 1us);
  EXPECT_EQ(net_->inbox(2), Texts({"data 0"})) << "at once";
}

TEST_F(Reduction, ADownMemberIsBackByAnyPacketThatIsNotMalformed) {
  net_->set_port(0, net_->port_of(1), false);
  net_->set_port(0, net_->port_of(1), true);
  const auto flags = [&] {
    net_->clear();
    net_->control(0, MrpType::kQuery, 1);
    return net_->last_report(0).flags;
  };
  auto h = net_->headers_from(1, wire::Opcode::kRcAcknowledge, -1);
  h.bth.destination_qp = Qpn(5);
  net_->inject(1, net_->make_frame(1, h));
  EXPECT_EQ(flags(), wire::kMemberDown);
  h.bth.destination_qp = wire::kVirtualQpn;
  net_->inject(1, net_->make_frame(1, h));
  EXPECT_EQ(flags(), wire::kMemberLate) << "as old as an answer to a probe";
  net_->set_port(0, net_->port_of(1), false);
  net_->set_port(0, net_->port_of(1), true);
  EXPECT_EQ(flags(), wire::kMemberDown);
  members_.send(1, 5, kBarrier, {});
  EXPECT_EQ(net_->count(Counter::kDropReductionGap), 1u);
  EXPECT_EQ(flags(), wire::kMemberLate) << "another packet of the member was lost";
}

TEST_F(Reduction, EndsForNoRefusalOfAResultThatWasNotSent) {
  all_contribute();
  for (const std::int64_t unit : {1, -1}) net_->feedback(2, unit, wire::AckKind::kNak, 3);
  all_contribute();
  EXPECT_EQ(net_->count(Counter::kDropReductionFailed), 0u);
  EXPECT_EQ(net_->count(Counter::kReductionUnits), 2u);
}

TEST_F(Reduction, NamesItsFailureAgainWhenTheLeaderQueries) {
  members_.send(1, 0, kBarrier, {});
  members_.send(2, 0, kOr, Bytes(5, 1));
  net_->advance(1s);
  net_->clear();
  net_->control(0, MrpType::kQuery, 1);
  EXPECT_THAT(net_->inbox(0), Contains(HasSubstr("reject e1 members that reduce")));
}

}  // namespace
}  // namespace cepheus::fabric
