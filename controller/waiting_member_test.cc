// Members that answer late, wait for data, fail or are cut off, as their leader sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "controller/test_leader.h"

namespace cepheus::mrp::test {
namespace {

using testing::HasSubstr;
using wire::MrpType;
using State = Registration::State;

// Rank after rank computes for minutes, with all its receives used up: no member may give up.
using LateMember = LeaderTest;

TEST_F(LateMember, ThatAnswersReassuresTheComplainingMember) {
  complain(1);
  report(2, kLate, 5);
  EXPECT_TRUE(reassured().empty()) << "it may have answered long ago";
  pass(250ms);
  report(2, kLate, 6);
  const auto list = reassured();
  ASSERT_EQ(list.size(), 1u);
  ASSERT_EQ(list[0].member_count, 1u);
  EXPECT_EQ(list[0].members[0], member(1));
  EXPECT_EQ(leader().alive_at(), now_);
  Membership& asker = net_.hosts.at(host(1));
  EXPECT_EQ(asker.on_message(now_, host(0), list[0], out_), Membership::Task::kWait);
  EXPECT_EQ(asker.on_message(now_, host(3), list[0], out_), Membership::Task::kNone)
      << "only its leader knows";
}

TEST_F(LateMember, MayBeTheLeaderItself) {
  complain(1);
  report(0, kLate, 5);
  report(0, kLate, 6);
  EXPECT_EQ(reassured().size(), 1u);
}

TEST_F(LateMember, ThatDoesNotAnswerReassuresNobody) {
  complain(1);
  for (int i = 0; i < 8; ++i) {
    report(2, kLate, 5);
    pass(250ms);
  }
  EXPECT_TRUE(reassured().empty());
  EXPECT_EQ(leader().evicted_count(), 0u);
}

TEST_F(LateMember, DoesNotHideOneThatIsSilent) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    complain(1);
    report(2, kLate, i);
    report(3, kOwes, 7);
    pass(250ms);
    // A member that is silent for less than a second may be slow.
    if (i < 5) {
      out_.clear();
    } else {
      EXPECT_TRUE(reassured().empty()) << i;
    }
  }
  report(3, kOwes, 8);
  report(2, kLate, 8);
  EXPECT_FALSE(reassured().empty()) << "it was only slow";
}

TEST_F(LateMember, IsQueriedOnlyWhileAMemberComplains) {
  complain(1);
  report(2, kLate, 5);
  out_.clear();
  for (std::uint32_t i = 6; i < 26; ++i) {
    pass(250ms);
    report(2, kLate, i);
  }
  EXPECT_LE(sent(MrpType::kQuery), 4);
}

class LateMemberOfAPatientOne : public LateMember {
 protected:
  LateMemberOfAPatientOne() : LateMember(config()) {}
  static RegistrationConfig config() {
    RegistrationConfig config = leader_config();
    config.asker_time_limit = 1h;
    return config;
  }
};

TEST_F(LateMemberOfAPatientOne, IsQueriedUntilTwoAndAHalfSecondsAfterItWasNamed) {
  for (const std::uint8_t flags : {kLate, kOwes}) {
    complain(1);
    report(2, flags, 5);
    out_.clear();
    pass(10s);
    EXPECT_EQ(sent(MrpType::kQuery), 10) << int(flags);
  }
}

// Members that wait for data ask the leader, because their own NICs report no failure.
class WaitingMember : public LeaderTest {
 protected:
  MrpMessage question(std::uint32_t i) {
    Outbox requested;
    net_.hosts.at(host(i)).send_request(requested);
    return requested.messages.at(0);
  }
  // The leader's answer to member i. Sent messages of other kinds stay in out_.
  std::optional<MrpMessage> answer_to(std::uint32_t i, const MrpMessage& message) {
    out_.clear();
    leader().on_message(now_, host(i), message, out_);
    for (const MrpMessage& m : out_.messages) {
      if (m.member_count > 0 && m.members[0].host == host(i)) return m;
    }
    return std::nullopt;
  }
};

TEST_F(WaitingMember, IsNotifiedThatTheGroupIsActive) {
  const auto answer = answer_to(1, question(1));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.type, MrpType::kAlive);
  EXPECT_EQ(answer->members[0].control_port, member(1).control_port);
  Membership& asker = net_.hosts.at(host(1));
  EXPECT_EQ(asker.on_message(now_, host(0), *answer, out_), Membership::Task::kStands);
}

TEST_F(WaitingMember, MakesTheLeaderQueryTheSwitchesOnceASecondAtMost) {
  answer_to(1, question(1));
  EXPECT_EQ(sent(MrpType::kQuery), 1);
  answer_to(2, question(2));
  EXPECT_EQ(sent(MrpType::kQuery), 0);
  pass(2s);
  EXPECT_EQ(sent(MrpType::kQuery), 0) << "nobody lags";
  answer_to(3, question(3));
  EXPECT_EQ(sent(MrpType::kQuery), 1);
}

// A member that only receives has no send that could fail.
TEST_F(WaitingMember, LearnsThatTheSourceDiedInSilence) {
  answer_to(2, question(2));
  for (int i = 0; i < 25 && leader().state() == State::kActive; ++i) {
    report(1, kSource | kOwes, 9);
    pass(250ms);
  }
  EXPECT_EQ(leader().state(), State::kFailed);
  EXPECT_GE(sent(MrpType::kUnregister), 1);
}

TEST_F(WaitingMember, IsNotifiedThatItWasEvicted) {
  const MrpMessage requested = question(2);
  report(2, kDown);
  const auto answer = answer_to(2, requested);
  ASSERT_TRUE(answer);
  Membership& member = net_.hosts.at(host(2));
  EXPECT_EQ(member.on_message(now_, host(0), *answer, out_), Membership::Task::kDissolved);
  EXPECT_EQ(member.reject_reason(), wire::MrpReject::kEvicted);
}

TEST_F(WaitingMember, IsNotifiedThatTheGroupHasEnded) {
  const MrpMessage requested = question(2);
  leader().give_up(now_, "the watchdog", out_);
  pass(10s);  // all messages without a question were lost
  const auto answer = answer_to(2, requested);
  ASSERT_TRUE(answer);
  Membership& member = net_.hosts.at(host(2));
  EXPECT_EQ(member.on_message(now_, host(0), *answer, out_), Membership::Task::kDissolved);
  EXPECT_EQ(member.reject_reason(), wire::MrpReject::kMemberFailed);
}

TEST_F(WaitingMember, SpeaksForItselfOnly) {
  EXPECT_FALSE(answer_to(1, question(2)));
  leader().on_message(now_, Ipv4(10, 9, 9, 9), question(2), out_);
  EXPECT_TRUE(out_.messages.empty());
}

TEST_F(WaitingMember, MayBeTheLeaderWhichQueriesItsSwitch) {
  leader().look(out_);
  ASSERT_EQ(out_.messages.size(), 1u);
  EXPECT_EQ(out_.messages[0].header.type, MrpType::kQuery);
  EXPECT_EQ(out_.messages[0].header.flags, wire::MrpHeader::kPresence);
  out_.clear();
  now_ += 1s;
  leader().on_message(now_, kSwitch, of_group(MrpType::kReport, {}), out_);
  EXPECT_EQ(leader().last_message_at(), now_);
  pass(10s);
  EXPECT_EQ(sent(MrpType::kQuery), 0) << "a report of nobody is no reason to ask";
}

// A member that failed itself sends no acknowledgements, but is not dead: no send may complete
// without it.
class FailedMember : public LeaderTest {
 protected:
  MrpMessage leave_message(std::uint32_t i) {
    Outbox last_messages;
    net_.hosts.at(host(i)).leave(now_, last_messages);
    return last_messages.messages.at(0);
  }
};

// A trunk is down, and the members behind it are unreachable: they are not dead, and none is
// evicted.
class LostPath : public LeaderTest {
 protected:
  MrpMessage path_lost(std::vector<MrpMember> named) {
    MrpMessage m = of_group(MrpType::kReject, std::move(named));
    m.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kPathLost);
    return m;
  }
};

TEST_F(LostPath, EndsTheGroupForAll) {
  leader().on_message(now_, kSwitch, path_lost({{host(2), net_.hosts.at(host(2)).self().qpn}}),
                      out_);
  EXPECT_EQ(leader().state(), State::kFailed);
  EXPECT_EQ(leader().reject_reason(), wire::MrpReject::kPathLost);
  EXPECT_THAT(leader().error().text,
              HasSubstr("has lost a path: a trunk on the way to 10.0.0.3 (qp 0x13) is down"));
  const auto is_notified = [](const MrpMessage& m) { return m.header.type == MrpType::kGiveUp; };
  EXPECT_TRUE(std::ranges::any_of(out_.messages, is_notified)) << "those beyond it, by another way";
  EXPECT_GE(sent(MrpType::kUnregister), 1);
  EXPECT_EQ(leader().evicted_count(), 0u);
}

TEST_F(LostPath, IsASwitchThatHasForgottenTheGroup) {
  MrpMessage forgotten = of_group(MrpType::kReject, {});
  forgotten.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kIncomplete);
  leader().on_message(now_, kSwitch, forgotten, out_);
  EXPECT_EQ(leader().state(), State::kFailed);
  EXPECT_THAT(leader().error().text, HasSubstr("has forgotten members: it was restarted perhaps"));
  EXPECT_GE(sent(MrpType::kUnregister), 1);
}

TEST_F(LostPath, IsASwitchsWordAboutMembers) {
  leader().on_message(now_, host(2), path_lost({{host(2), net_.hosts.at(host(2)).self().qpn}}),
                      out_);
  leader().on_message(now_, kSwitch, path_lost({{host(9), wire::Qpn(9)}}), out_);
  leader().on_message(now_, kSwitch, path_lost({{host(0), wire::Qpn(9)}}), out_);
  EXPECT_EQ(leader().state(), State::kActive);
}

TEST_F(FailedMember, EndsTheGroupForAll) {
  leader().on_message(now_, host(2), leave_message(2), out_);
  EXPECT_EQ(leader().state(), State::kFailed);
  EXPECT_EQ(leader().reject_reason(), wire::MrpReject::kMemberFailed);
  EXPECT_THAT(leader().error().text, HasSubstr("10.0.0.3 (qp 0x13) left the group"));
  EXPECT_GE(sent(MrpType::kUnregister), 1);
  EXPECT_EQ(leader().evicted_count(), 0u);
}

TEST_F(FailedMember, SpeaksForItselfOnly) {
  MrpMessage last_messages = leave_message(2);
  leader().on_message(now_, host(3), last_messages, out_);
  last_messages.members[0].qpn = wire::Qpn(0x99);
  leader().on_message(now_, host(2), last_messages, out_);
  last_messages.members[0] = member(0);
  leader().on_message(now_, host(0), last_messages, out_);
  EXPECT_EQ(leader().state(), State::kActive);
}

TEST_F(FailedMember, MayBeTheLeaderItself) {
  leader().give_up(now_, "no send completed for 8000 ms", out_);
  EXPECT_EQ(leader().state(), State::kFailed);
  net_.under_way.clear();
  for (const MrpMessage& m : out_.messages) net_.under_way.push_back({host(0), m});
  net_.run_until_idle();
  for (const auto& [address, membership] : net_.hosts) {
    EXPECT_EQ(membership.state(), Membership::State::kGone);
    EXPECT_EQ(membership.reject_reason(), wire::MrpReject::kMemberFailed);
  }
  out_.clear();
  leader().give_up(now_, "again", out_);
  EXPECT_TRUE(out_.messages.empty());
}

}  // namespace
}  // namespace cepheus::mrp::test
