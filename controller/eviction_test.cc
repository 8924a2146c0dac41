// Members that die or stall, as their leader sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/test_leader.h"

namespace cepheus::mrp::test {
namespace {

using testing::HasSubstr;
using wire::MrpType;
using State = Registration::State;

using Eviction = LeaderTest;

TEST_F(Eviction, RemovesAMemberWhosePortIsDownAtOnce) {
  report(2, kDown);
  EXPECT_EQ(evict_sent_for(), std::vector{member(2)});
  EXPECT_EQ(leader().evicted_count(), 1u);
  EXPECT_EQ(leader().member_count(), 3u);
}

// Another dead member may delay their sends only from now on.
TEST_F(Eviction, RestartsTheWatchdogsOfMembersThatComplained) {
  complain(1);
  report(2, kDown);
  EXPECT_EQ(leader().alive_at(), now_) << "the leader's own";
  const auto list = reassured();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_THAT(list[0].list(), testing::ElementsAre(member(1)));
}

TEST_F(Eviction, IsRepeatedUntilTheSwitchConfirms) {
  report(2, kDown);
  out_.clear();
  pass(100ms);
  EXPECT_EQ(evict_sent_for(), std::vector{member(2)});
  MrpMessage done = of_group(MrpType::kConfirm, {member(2)});
  done.header.flags = static_cast<std::uint16_t>(MrpType::kEvict);
  leader().on_message(now_, kSwitch, done, out_);
  pass(10s);
  EXPECT_TRUE(evict_sent_for().empty());
}

TEST_F(Eviction, GivesUpOnASwitchThatNeverConfirms) {
  report(2, kDown);
  pass(60s);
  EXPECT_EQ(sent(MrpType::kEvict), static_cast<int>(leader_config().repeats.evict.transmissions));
}

TEST_F(Eviction, QueriesAgainWhileAMemberLags) {
  report(1, kOwes, 5);
  pass(1s);
  EXPECT_GE(sent(MrpType::kQuery), 3);
  pass(10s);  // without answers no member lags
  out_.clear();
  pass(10s);
  EXPECT_EQ(sent(MrpType::kQuery), 0);
}

TEST_F(Eviction, SparesAMemberThatIsSlowButAnswers) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    report(1, kOwes, i / 8);
    pass(250ms);
  }
  EXPECT_EQ(leader().evicted_count(), 0u);
}

TEST_F(Eviction, SparesAMemberThatIsSilentForThreeSeconds) {
  for (int i = 0; i < 12; ++i) {
    report(1, kOwes, 7);
    pass(250ms);
  }
  report(1, kOwes, 8);
  for (int i = 0; i < 12; ++i) {
    pass(250ms);
    report(1, kOwes, 8);
  }
  EXPECT_EQ(leader().evicted_count(), 0u);
}

TEST_F(Eviction, RemovesAMemberThatLagsAndIsSilentForLong) {
  for (int i = 0; i < 21; ++i) {
    report(1, kOwes, 7);
    pass(250ms);
  }
  EXPECT_EQ(leader().evicted_count(), 1u);
}

TEST_F(Eviction, CountsNoSilenceWhileNobodyLooked) {
  report(1, kOwes, 7);
  pass(60s);
  report(1, kOwes, 7);
  EXPECT_EQ(leader().evicted_count(), 0u);
}

TEST_F(Eviction, EndsTheGroupIfTheSourceIsGoneWithAMessageThatNotAllHave) {
  report(1, kDown | kSource | kOwes);
  EXPECT_EQ(leader().state(), State::kActive) << "answers may be on their way";
  for (int i = 0; i < 4 && leader().state() == State::kActive; ++i) {
    pass(250ms);
    report(1, kDown | kSource | kOwes);
  }
  EXPECT_EQ(leader().state(), State::kFailed);
  EXPECT_THAT(leader().error().text, HasSubstr("10.0.0.2 (qp 0x12) was lost"));
  EXPECT_GE(sent(MrpType::kUnregister), 1);
}

TEST_F(Eviction, EndsTheGroupIfTheSourceIsSilentWhileOthersWaitForTheirTurn) {
  for (int i = 0; i < 21 && leader().state() == State::kActive; ++i) {
    report(1, kSource | kOwes, i % 2 == 0 ? 9 : 7);  // two switches, one of which has seen less
    pass(250ms);
  }
  EXPECT_EQ(leader().state(), State::kFailed);
}

TEST_F(Eviction, RemovesASourceWhoseMessagesAllHave) {
  report(1, kDown | kSource | kOwes);
  report(1, kDown | kSource);
  EXPECT_EQ(evict_sent_for(), std::vector{member(1)});
  EXPECT_EQ(leader().state(), State::kActive);
}

// A group without evictions, as MPI's are.
class LossEndsTheGroup : public LeaderTest {
 protected:
  LossEndsTheGroup() : LeaderTest(strict()) {}
  static RegistrationConfig strict() {
    RegistrationConfig config = leader_config();
    config.lost_member = LostMember::kEndsGroup;
    return config;
  }
};

TEST_F(LossEndsTheGroup, IsAFlagOfRegister) {
  Registration other(strict(), kGroup, kEpoch);
  ASSERT_TRUE(other.start(now_, members(4), out_));
  ASSERT_EQ(out_.messages.size(), 1u);
  EXPECT_EQ(out_.messages[0].header.flags, wire::MrpHeader::kLossEnds);
}

TEST_F(LossEndsTheGroup, AtOnceIfAPortIsDown) {
  report(2, kDown);
  EXPECT_EQ(leader().state(), State::kFailed);
  EXPECT_THAT(leader().error().text, HasSubstr("10.0.0.3 (qp 0x13) was lost: its port is down"));
  EXPECT_EQ(leader().reject_reason(), wire::MrpReject::kEvicted);
  EXPECT_EQ(leader().evicted_count(), 0u);
  EXPECT_EQ(sent(MrpType::kEvict), 0);
  pass(1s);
  report(2, kDown);
  EXPECT_EQ(sent(MrpType::kEvict), 0);
}

TEST_F(LossEndsTheGroup, IfAMemberLagsInSilenceForLong) {
  for (int i = 0; i < 12; ++i) {
    report(1, kOwes, 7);
    pass(250ms);
  }
  EXPECT_EQ(leader().state(), State::kActive) << "three seconds are a stall";
  for (int i = 0; i < 9 && leader().state() == State::kActive; ++i) {
    report(1, kOwes, 7);
    pass(250ms);
  }
  EXPECT_EQ(leader().state(), State::kFailed);
  EXPECT_THAT(leader().error().text, HasSubstr("has not answered for 5 s"));
  EXPECT_EQ(leader().evicted_count(), 0u);
  EXPECT_GE(sent(MrpType::kUnregister), 1);
}

TEST_F(LossEndsTheGroup, ButNotForAMemberThatIsLateForHours) {
  for (int i = 0; i < 4 * 3600; ++i) {
    report(1, kLate, 7);
    pass(250ms);
  }
  EXPECT_EQ(leader().state(), State::kActive);
}

TEST_F(Eviction, AMembersComplaintMakesTheLeaderQuery) {
  Membership& membership = net_.hosts.at(host(1));
  Outbox complaint;
  membership.complain(complaint);
  ASSERT_EQ(complaint.messages.size(), 1u);
  EXPECT_EQ(complaint.messages[0].header.type, MrpType::kComplain);
  leader().on_message(now_, host(1), complaint.messages[0], out_);
  EXPECT_EQ(sent(MrpType::kQuery), 1);
  leader().on_message(now_, Ipv4(10, 9, 9, 9), complaint.messages[0], out_);
  EXPECT_EQ(sent(MrpType::kQuery), 0) << "a stranger's";
}

TEST_F(Eviction, NeverRemovesTheLeaderOrAStranger) {
  report(0, kDown);
  report(9, kDown);
  EXPECT_EQ(leader().evicted_count(), 0u);
}

TEST_F(Eviction, UnregisteringWaitsForNobodyWhoLeft) {
  report(2, kDown);
  out_.clear();
  leader().unregister(now_, out_);
  for (const std::uint32_t i : {1u, 3u}) {
    MrpMessage done = of_group(MrpType::kConfirm, {member(i)});
    done.header.flags = static_cast<std::uint16_t>(MrpType::kUnregister);
    leader().on_message(now_, host(i), done, out_);
  }
  EXPECT_EQ(leader().state(), State::kGone);
}

TEST_F(Eviction, AMemberThatIsOutLearnsIt) {
  MrpMessage out = of_group(MrpType::kUnregister, {});
  out.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kEvicted);
  Membership& membership = net_.hosts.at(host(1));
  EXPECT_EQ(membership.on_message(now_, host(0), out, out_), Membership::Task::kDissolved);
  EXPECT_EQ(membership.reject_reason(), wire::MrpReject::kEvicted);
  EXPECT_EQ(membership.state(), Membership::State::kGone);
}

}  // namespace
}  // namespace cepheus::mrp::test
