#include "controller/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/test_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using ::testing::HasSubstr;
using State = Registration::State;
using wire::ErrorCode;
using wire::MrpReject;
using wire::MrpType;

TEST(Outbox, GivesBackTheMemoryOfALargeGroup) {
  Outbox out;
  out.messages.resize(100);
  out.of_sender_groups.resize(100);
  out.free();
  EXPECT_TRUE(out.messages.empty());
  EXPECT_LE(out.messages.capacity(), 2u);
  EXPECT_LE(out.of_sender_groups.capacity(), 2u);
}

TEST(Registration, ActivatesWhenEveryMemberHasConfirmedAllSteps) {
  StartedNetwork net(4);
  EXPECT_EQ(net.leader.state(), State::kRegistering);
  EXPECT_EQ(net.leader.missing().size(), 3u);
  net.run_until_idle();
  EXPECT_EQ(net.leader.state(), State::kActive);
  for (const auto& [address, m] : net.hosts) {
    EXPECT_EQ(m.state(), Membership::State::kActive) << address.to_string();
    EXPECT_EQ(m.leader(), host(0));
    EXPECT_EQ(m.id(), kGroup);
    EXPECT_EQ(m.epoch(), kEpoch);
  }
  EXPECT_EQ(net.sent, 3u + 3 * 3);  // nothing was repeated
}

TEST(Registration, SendsNoActivateBeforeTheLastConfirm) {
  Network net(3);
  bool activated = false;
  net.lose = [&](const Network::Datagram& d) {
    activated |= is(d, MrpType::kActivate);
    return is(d, MrpType::kConfirm) && d.from == host(2);
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 500ms);
  EXPECT_EQ(net.leader.state(), State::kRegistering);
  EXPECT_FALSE(activated);
}

TEST(Registration, RepeatsWithGrowingPausesUntilALateMemberAnswers) {
  Network net(3);
  std::vector<Instant> tries;
  net.lose = [&](const Network::Datagram& d) {
    if (is(d, MrpType::kRegister)) tries.push_back(net.now);
    return is(d, MrpType::kConfirm) && d.from == host(2) && net.now < kStart + 400ms;
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 900ms);
  EXPECT_EQ(net.leader.state(), State::kActive);
  const std::vector<Instant> expected = {kStart,         kStart + 20ms,  kStart + 60ms,
                                         kStart + 140ms, kStart + 300ms, kStart + 500ms};
  EXPECT_EQ(tries, expected);
}

// A switch gets no repeats once all its members have confirmed. It forgets the group of a silent
// leader.
TEST(Registration, IsRefreshedAtAllSwitchesHoweverLongAMemberTakes) {
  Network net(3, leader_config(20s));
  Instant last = kStart;
  Duration longest{0};
  net.lose = [&](const Network::Datagram& d) {
    if (is(d, MrpType::kRefresh)) {
      longest = std::max(longest, net.now - last);
      last = net.now;
    }
    // Half of the time for either step.
    const bool activates = net.leader.state() == State::kActivating;
    const Instant until = kStart + (activates ? 19s : 9s);
    return is(d, MrpType::kConfirm) && d.from == host(2) && net.now < until;
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 18s);
  EXPECT_EQ(net.leader.state(), State::kActivating);
  net.run(kStart + 19s + 500ms);
  EXPECT_EQ(net.leader.state(), State::kActive);
  EXPECT_GE(last, kStart + 18s);
  EXPECT_LE(longest, times::kRefreshPending + times::kLongestRetry);
}

TEST(Registration, IsRefreshedAsSoonAsItMustBe) {
  RegistrationConfig config = leader_config();
  config.refresh_pending = 300ms;  // when REGISTER is repeated, too
  Network net(3, config);
  std::vector<Instant> refreshed;
  net.lose = [&](const Network::Datagram& d) {
    if (is(d, MrpType::kRefresh)) refreshed.push_back(net.now);
    return d.from == host(2);
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 350ms);
  EXPECT_EQ(refreshed, std::vector{kStart + 300ms});
}

// Of eight members another one confirms every 700 ms, so each step takes more than 4 s.
TEST(Registration, GoesOnWhileTheFabricAnswersAndEndsInItsSilence) {
  for (const bool falls_silent : {false, true}) {
    Network net(8, leader_config(20s, 1s));
    Instant step_began = kStart;
    State step = State::kRegistering;
    net.lose = [&](const Network::Datagram& d) {
      if (net.leader.state() != step) {
        step = net.leader.state();
        step_began = net.now;
      }
      for (std::uint32_t i = 1; i < 8; ++i) {
        if (d.from != host(i) || !is(d, MrpType::kConfirm)) continue;
        return net.now < step_began + (i - 1) * 700ms || (falls_silent && i > 4);
      }
      return false;
    };
    ASSERT_TRUE(net.start());
    net.run(kStart + 3s);
    EXPECT_EQ(net.leader.state(), State::kRegistering);
    net.run(kStart + 3200ms);
    if (falls_silent) {
      EXPECT_EQ(net.leader.state(), State::kFailed);
      EXPECT_EQ(net.leader.error().code, ErrorCode::kTimedOut);
      EXPECT_THAT(net.leader.error().text,
                  HasSubstr("did not confirm, and no other member did for 1 s"));
      continue;
    }
    EXPECT_EQ(net.leader.state(), State::kRegistering);
    net.run(kStart + 15s);
    EXPECT_EQ(net.leader.state(), State::kActive);
  }
}

TEST(Registration, IgnoresWhatIsNotForIt) {
  StartedNetwork net(3);
  const MrpMessage confirm = confirm_for({1});
  const auto changed = [&](auto change) {
    MrpMessage m = confirm;
    change(m);
    net.deliver({host(1), m});
    return net.leader.missing().size() != 2 || net.leader.state() != State::kRegistering;
  };
  EXPECT_FALSE(changed([](MrpMessage& m) { m.header.epoch += 1; }));
  EXPECT_FALSE(changed([](MrpMessage& m) { m.header.instance += 1; }));
  EXPECT_FALSE(changed([](MrpMessage& m) { m.header.mcst_id = Ipv4(198, 18, 3, 5); }));
  EXPECT_FALSE(changed([](MrpMessage& m) { m.header.flags = unsigned(MrpType::kActivate); }));
  EXPECT_FALSE(changed([](MrpMessage& m) { m.members[0].qpn = wire::Qpn(0x99); }));
  EXPECT_FALSE(changed([](MrpMessage& m) { m.members[0].host = host(0); }));
  net.deliver({host(2), confirm});  // a member speaks for another
  EXPECT_EQ(net.leader.missing().size(), 2u);
  net.deliver({host(1), confirm});
  EXPECT_EQ(net.leader.missing(), std::vector{member(2)});
}

TEST(Registration, BelievesASwitchAboutAllBehindIt) {
  StartedNetwork net(5);
  net.deliver({kSwitch, confirm_for({2, 4})});
  EXPECT_EQ(net.leader.missing(), (std::vector{member(1), member(3)}));
  net.deliver({kSwitch, confirm_for({1, 2, 3})});
  EXPECT_EQ(net.leader.state(), State::kConnecting);
}

TEST(Registration, RepeatsForThoseThatAreMissingOnly) {
  Network net(200);
  std::vector<MrpMember> requested;
  net.lose = [&](const Network::Datagram& d) {
    if (is(d, MrpType::kRegister))
      requested.insert(requested.end(), d.message.list().begin(), d.message.list().end());
    const bool late = d.from == host(7) || d.from == host(150);
    return late && d.message.header.type == MrpType::kConfirm && net.now < kStart + 10ms;
  };
  ASSERT_TRUE(net.start());
  net.run_until_idle();
  EXPECT_EQ(requested.size(), 200u);
  requested.clear();
  net.run(kStart + 25ms);
  EXPECT_EQ(requested, (std::vector{member(7), member(150), member(0)})) << "and the leader itself";
  EXPECT_EQ(net.leader.state(), State::kActive);
}

TEST(Registration, ActivatesAndUnregistersAgainOnlyTowardsTheMissing) {
  Network net(4);
  std::vector<std::size_t> named;
  MrpType step = MrpType::kActivate;
  net.lose = [&](const Network::Datagram& d) {
    if (is(d, step)) named.push_back(d.message.member_count);
    return d.from == host(2) && d.message.header.flags == unsigned(step) && named.size() < 2;
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 100ms);
  EXPECT_EQ(net.leader.state(), State::kActive);
  EXPECT_EQ(named, (std::vector<std::size_t>{0, 1})) << "all, then one";
  named.clear();
  step = MrpType::kUnregister;
  net.unregister();
  net.run(net.now + 100ms);
  EXPECT_EQ(net.leader.state(), State::kGone);
  EXPECT_EQ(named, (std::vector<std::size_t>{0, 1}));
}

TEST(Registration, LearnsFromItsMembersHowTheSourceChanges) {
  for (const bool host_sync : {false, true}) {
    StartedNetwork net(2);
    MrpMessage confirm = reject(MrpReject::kNone, {member(1)});
    confirm.header.type = MrpType::kConfirm;
    confirm.header.flags = static_cast<std::uint16_t>(static_cast<int>(MrpType::kRegister) |
                                                      (host_sync ? wire::MrpHeader::kHostSync : 0));
    net.deliver({host(1), confirm});
    EXPECT_EQ(net.leader.state(), State::kConnecting);
    EXPECT_EQ(net.leader.host_sync(), host_sync);
  }
}

TEST(Registration, FailsWhereSwitchesDisagreeOnHowTheSourceChanges) {
  StartedNetwork net(3);
  for (int i = 1; i <= 2; ++i) {
    MrpMessage confirm = reject(MrpReject::kNone, {member(i)});
    confirm.header.type = MrpType::kConfirm;
    confirm.header.flags = static_cast<std::uint16_t>(static_cast<int>(MrpType::kRegister) |
                                                      (i == 2 ? wire::MrpHeader::kHostSync : 0));
    net.deliver({host(i), confirm});
  }
  EXPECT_EQ(net.leader.state(), State::kFailed);
  EXPECT_THAT(net.leader.error().text, HasSubstr("give all the same source_change"));
}

TEST(Registration, IsHeldUntilTheLeaderIsReadyItself) {
  Network net(3);
  net.leader.hold("its queue pair was not connected");
  ASSERT_TRUE(net.start());
  net.run_until_idle();
  EXPECT_EQ(net.leader.state(), State::kConnecting);
  EXPECT_TRUE(net.leader.missing().empty());
  net.release();
  net.run_until_idle();
  EXPECT_EQ(net.leader.state(), State::kActive);
}

TEST(Registration, ThatIsHeldTooLongNamesTheLeadersOwnCauses) {
  Network net(2);
  net.leader.hold("its queue pair was not connected");
  ASSERT_TRUE(net.start());
  net.run(net.now + 2s);
  EXPECT_THAT(net.leader.error().text, HasSubstr("its queue pair was not connected"));
}

// A device may block for long in the call that connects the leader's own queue pair.
TEST(Registration, ThatIsHeldWaitsForNoMessageOfMembers) {
  Network net(4, leader_config(20s, 1s));
  net.leader.hold("its queue pair was not connected");
  ASSERT_TRUE(net.start());
  net.run(kStart + 5s);
  EXPECT_EQ(net.leader.state(), State::kConnecting) << net.leader.error().text;
  net.unplugged = host(2);
  net.release();
  net.run(kStart + 5900ms);
  EXPECT_EQ(net.leader.state(), State::kActivating);
  net.run(kStart + 6s);
  EXPECT_EQ(net.leader.state(), State::kFailed) << "silence counts again";
}

TEST(Registration, SplitsALargeGroupIntoNumberedPackets) {
  StartedNetwork net(400);
  constexpr std::size_t kPackets = 5;  // of 89
  ASSERT_EQ(net.under_way.size(), kPackets);
  std::size_t named = 0;
  for (std::size_t i = 0; i < kPackets; ++i) {
    const MrpMessage& m = net.under_way[i].message;
    EXPECT_EQ(m.header.seq, i);
    EXPECT_EQ(m.header.total, kPackets);
    named += m.member_count;
  }
  EXPECT_EQ(named, 400u);
  std::swap(net.under_way[0], net.under_way[2]);
  net.run_until_idle();
  EXPECT_EQ(net.leader.state(), State::kActive);
}

TEST(Registration, RepeatsUnregisterThreeTimesWhenNobodyAnswers) {
  StartedNetwork net(3);
  net.run_until_idle();
  unsigned sent = 0;
  net.lose = [&](const Network::Datagram& d) {
    sent += is(d, MrpType::kUnregister);
    return true;
  };
  net.unregister();
  net.run(kStart + 1s);
  EXPECT_EQ(sent, 3u);
  EXPECT_EQ(net.leader.state(), State::kGone);
}

TEST(Registration, CanBeUnregisteredInAnyState) {
  Network idle(2);
  idle.unregister();
  EXPECT_EQ(idle.leader.state(), State::kGone);
  EXPECT_EQ(idle.sent, 0u);

  StartedNetwork waiting(2);
  waiting.unregister();
  waiting.run(kStart + 1s);
  EXPECT_EQ(waiting.leader.state(), State::kGone);

  StartedNetwork failed(2);
  failed.deliver({host(1), reject(MrpReject::kTableFull)});
  failed.unregister();
  EXPECT_EQ(failed.leader.state(), State::kUnregistering);
  failed.unregister();
  failed.run(kStart + 1s);
  EXPECT_EQ(failed.leader.state(), State::kGone);
}

// The record leaves room for fewer members.
TEST(Registration, NamesAReductionGroupInEachPacketOfItsList) {
  RegistrationConfig config = leader_config();
  config.lost_member = LostMember::kEndsGroup;
  config.reduction = wire::MrpReduction{wire::MrpReduction::kValues, 4096, 64};
  Registration leader(config, kGroup, kEpoch);
  Outbox out;
  ASSERT_TRUE(leader.start(kStart, members(100), out));
  ASSERT_EQ(out.messages.size(), 2u);
  EXPECT_EQ(out.messages[0].list().size(), MrpMessage::kMaxWithReduction);
  leader.on_timer(leader.deadline(), out);
  ASSERT_EQ(out.messages.size(), 4u) << "and in repeats";
  config.reduction->ascends = true;
  for (const MrpMessage& message : out.messages) EXPECT_EQ(message.reduction, config.reduction);
  out.clear();
  leader.give_up(kStart, "", out);
  for (const MrpMessage& message : out.messages) EXPECT_FALSE(message.reduction);
  for (const wire::MrpReduction& bad : {wire::MrpReduction{2, 4096, 48}, {2, 0, 64}, {2, 12, 64}}) {
    config.reduction = bad;
    Registration other(config, kGroup, kEpoch);
    const auto started = other.start(kStart, members(4), out);
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().text, HasSubstr("a power of two up to 256"));
  }
}

TEST(Registration, ShowsMembersOfAReductionWhetherAddressesAscend) {
  RegistrationConfig config = leader_config();
  config.lost_member = LostMember::kEndsGroup;
  config.reduction = wire::MrpReduction{wire::MrpReduction::kValues, 4096, 64};
  std::vector<MrpMember> list = members(4);
  for (const bool ascends : {true, false}) {
    Registration leader(config, kGroup, kEpoch);
    Outbox out;
    ASSERT_TRUE(leader.start(kStart, list, out));
    EXPECT_EQ(leader.ascends(), ascends);
    EXPECT_EQ(out.messages.at(0).reduction->ascends, ascends);
    std::swap(list[1], list[3]);
  }
}

TEST(Registration, RefusesListsItCannotServe) {
  const auto error_of = [](std::vector<MrpMember> list) {
    Registration r(leader_config(), kGroup, kEpoch);
    Outbox out;
    const auto result = r.start(kStart, list, out);
    EXPECT_TRUE(out.messages.empty());
    return result ? std::string() : result.error().text;
  };
  EXPECT_THAT(error_of({}), HasSubstr("at least one more member"));
  EXPECT_THAT(error_of({member(0)}), HasSubstr("at least one more member"));
  EXPECT_THAT(error_of({member(1), member(2)}), HasSubstr("10.0.0.1 is not among the members"));
  EXPECT_THAT(error_of({member(0), member(1), {host(1), wire::Qpn(0x99), 0}}),
              HasSubstr("host 10.0.0.2 is listed twice"));
}

TEST(Registration, MissesMembersInFrontOfTheLeaderToo) {
  RegistrationConfig config = leader_config();
  config.host = host(2);
  Registration leader(config, kGroup, kEpoch);
  Outbox out;
  ASSERT_TRUE(leader.start(kStart, members(3), out));
  EXPECT_EQ(leader.missing(), (std::vector{member(0), member(1)}));
}

// Switches compare it with their tables, and so notice missing members.
TEST(Registration, SendsTheNumberOfMembersWhenItActivates) {
  for (const bool repeated : {false, true}) {
    Network net(200);
    std::vector<int> sent_flags;
    net.lose = [&](const Network::Datagram& d) {
      if (!is(d, MrpType::kActivate)) return false;
      sent_flags.push_back(d.message.header.flags);
      return repeated && sent_flags.size() == 1;
    };
    ASSERT_TRUE(net.start());
    net.run(kStart + 100ms);
    EXPECT_EQ(net.leader.state(), State::kActive);
    EXPECT_EQ(sent_flags, std::vector<int>(repeated ? 4 : 1, 199))
        << "199 names take three datagrams";
  }
}

}  // namespace
}  // namespace cepheus::mrp
