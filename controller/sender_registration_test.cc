#include "controller/sender_registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/test_sender_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using ::testing::HasSubstr;
using ::testing::Not;
using SenderState = SenderRegistration::State;
using To = SenderNetwork::To;
using wire::ErrorCode;

SenderNetwork active(SenderNetworkShape shape = {}) {
  SenderNetwork net(shape);
  EXPECT_TRUE(net.start());
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kActive) << net.sender.error().text;
  return net;
}

TEST(SenderRegistration, IsActiveOnceEveryReceiverHasAnsweredOverEveryPath) {
  SenderNetwork net({5, 3, 2});
  ASSERT_TRUE(net.start());
  EXPECT_EQ(net.sender.state(), SenderState::kInstalling);
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
  for (const auto& [address, receiver] : net.receivers) {
    EXPECT_EQ(receiver.state(), ReceiverMembership::State::kActive) << address.to_string();
    EXPECT_EQ(receiver.sender(), host(0));
    EXPECT_EQ(receiver.virtual_qpn(), kVirtualQpn);
    EXPECT_EQ(receiver.start_psn(), kStartPsn);
  }
  EXPECT_EQ(net.sent.size(), 2u);  // nothing was repeated
}

// The least of all counts; every receiver connects once, with that.
TEST(SenderRegistration, MeasuresThePathMtuBeforeReceiversConnect) {
  SenderConfig config = sender_config();
  config.path_mtu = 4096;
  SenderNetwork net({5, 3, 2}, config);
  net.receivers.at(host(2)) = ReceiverMembership(member(2), times::kSenderLives, 1024);
  net.receivers.at(host(5)) = ReceiverMembership(member(5), times::kSenderLives, 2048);
  ASSERT_TRUE(net.start());
  EXPECT_EQ(net.sent[0].header.flags, SenderGroupMessage::kFresh | SenderGroupMessage::kMeasures);
  unsigned lost = 0;
  net.lose = [&](const SenderNetwork::Datagram& d) { return d.from == host(2) && ++lost == 1; };
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kMeasuring);
  EXPECT_TRUE(net.connect_calls.empty());
  const auto late = net.sent[0];
  net.run(kStart + 100ms);
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
  EXPECT_EQ(net.sender.path_mtu(), 1024);
  net.under_way.push_back({SenderNetwork::To::kSendersSwitch, host(0), {}, 0, late});
  net.run_until_idle();
  for (const auto& [address, receiver] : net.receivers) {
    EXPECT_EQ(net.connect_calls[address], 1) << address.to_string();
    EXPECT_EQ(receiver.path_mtu(), 1024);
    EXPECT_EQ(receiver.state(), ReceiverMembership::State::kActive);
  }
}

// 0 would be no limit.
TEST(SenderRegistration, InstallsTheLeastPathMtuIfNoneFits) {
  SenderConfig config = sender_config();
  config.path_mtu = 4096;
  SenderNetwork net({1, 1, 1}, config);
  net.receivers.at(host(1)) = ReceiverMembership(member(1), times::kSenderLives, 100);
  ASSERT_TRUE(net.start());
  net.run_until_idle();
  EXPECT_EQ(net.sent.at(1).path_mtu, 256);
  EXPECT_EQ(net.sender.path_mtu(), 256);
}

TEST(SenderRegistration, AddressesTheAliasAndSendsTheFieldsThatSwitchesNeed) {
  SenderNetwork net({2, 2, 1});
  const wire::MrpRegion region{7, 0xABCD, 0x1000, 4096};
  ASSERT_TRUE(net.start({{1, region}}));
  const SenderGroupMessage& m = net.sent.at(0);
  EXPECT_EQ(m.header.type, MrpType::kInstall);
  EXPECT_EQ(m.header.flags, SenderGroupMessage::kFresh);
  EXPECT_EQ(destination(m), host(1));
  EXPECT_EQ(m.sender(), host(0));
  EXPECT_EQ(m.control_port, 41000);
  EXPECT_EQ(m.share, SenderGroupMessage::kWholeShare);
  EXPECT_THAT(m.list(), ::testing::ElementsAre(member(1), member(2)));
  ASSERT_EQ(m.region_count, 1u);
  EXPECT_EQ(m.regions[0], (SenderGroupMessage::Region{1, region}));
  net.run_until_idle();
  EXPECT_EQ(net.sent.at(1).region_count, 1u);  // for switches that learn of the group later
}

TEST(SenderRegistration, WaitsForEveryPathOfAReceiver) {
  SenderNetwork net({2, 2, 2});
  int on_the_way = 0;
  net.lose = [&](const SenderNetwork::Datagram& d) {  // one of two spines
    return d.to == To::kRack && net.now < kStart + 100ms && on_the_way++ % 2 == 0;
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 100ms);
  EXPECT_EQ(net.sender.state(), SenderState::kInstalling);
  net.run(kStart + 500ms);
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
}

TEST(SenderRegistration, TakesAnswersToAnEarlierAttemptForGood) {
  SenderNetwork net({2, 2, 1});
  std::vector<SenderNetwork::Datagram> late;
  net.lose = [&](const SenderNetwork::Datagram& d) {
    if (d.to == To::kSender) late.push_back(d);
    return d.to == To::kSender;
  };
  ASSERT_TRUE(net.start());
  net.run_until_idle();
  ASSERT_EQ(late.size(), 2u);
  net.run(kStart + 300ms);
  net.lose = nullptr;
  const auto first = late;  // of the first attempt
  net.deliver(first[0]);
  net.deliver(first[1]);
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
}

TEST(SenderRegistration, RepeatsInstallWithGrowingPausesAndWithoutAShare) {
  SenderNetwork net = active({2, 1, 1});
  net.sent.clear();
  std::vector<Duration> pauses;
  Instant last = kStart;
  net.lose = [&](const SenderNetwork::Datagram& d) {
    if (d.to == To::kSendersSwitch) {
      pauses.push_back(net.now - last);
      last = net.now;
    }
    return false;
  };
  net.run(kStart + 3500ms);
  EXPECT_EQ(pauses, (std::vector<Duration>{20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1s, 1s}));
  for (const SenderGroupMessage& m : net.sent) {
    EXPECT_EQ(m.header.type, MrpType::kInstall);
    EXPECT_EQ(m.share, 0u);
    EXPECT_EQ(m.header.flags, 0);  // something may have been sent
    EXPECT_EQ(m.receiver_count, 2u);
  }
}

TEST(SenderRegistration, TimesOutNamingTheMissingAndNotifiesTheOthers) {
  SenderNetwork net({3, 1, 1});
  net.lose = [](const SenderNetwork::Datagram& d) {
    return d.to == To::kReceiver && d.host == host(2);
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 2s);
  EXPECT_EQ(net.sender.state(), SenderState::kFailed);
  EXPECT_EQ(net.sender.error().code, ErrorCode::kTimedOut);
  EXPECT_THAT(net.sender.error().text, HasSubstr("10.0.0.3 (qp 0x13) did not confirm within 1 s"));
  EXPECT_THAT(net.sender.error().text, Not(HasSubstr("10.0.0.2")));
  EXPECT_EQ(net.receivers.at(host(1)).state(), ReceiverMembership::State::kFailed);
  EXPECT_EQ(net.receivers.at(host(1)).reject_reason(), MrpReject::kNone);
  EXPECT_EQ(net.sender.deadline(), wire::kNever);
}

// With losses and many paths, no attempt may ever come through whole.
TEST(SenderRegistration, IsActiveOnceAllHaveAnsweredSomeOfFourAttempts) {
  SenderNetwork net({2, 2, 2});
  int on_the_way = 0;
  net.lose = [&](const SenderNetwork::Datagram& d) {
    return d.to == To::kRack && on_the_way++ % 2 == 0;
  };
  ASSERT_TRUE(net.start());
  net.run(kStart + 139ms);  // 20, 40, 80 ms between them
  EXPECT_EQ(net.sender.state(), SenderState::kInstalling);
  net.run(kStart + 200ms);
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
}

TEST(SenderRegistration, FailsOnARefusalNamingWhoAndWhy) {
  struct Case {
    Ipv4 from;
    MrpReject reason;
    std::vector<MrpMember> named;
    const char* text;
  };
  const Case cases[] = {
      {kSwitch,
       MrpReject::kTableFull,
       {},
       "10.255.0.1 refused the registration: the switch has no"},
      {kSwitch, MrpReject::kNoRoute, {bare(2)}, "no route to 10.0.0.3 (qp 0x13)"},
      {kSwitch, MrpReject::kNoSenderGroups, {}, "set sender_groups = \"everywhere\""},
      {host(2), MrpReject::kMemberFailed, {bare(2)}, "has failed: the group's reason on that host"},
      {host(2), MrpReject::kNotMember, {bare(2)}, "create fresh groups of one kind"},
  };
  for (const Case& c : cases) {
    SenderNetwork net({2, 1, 1});
    net.lose = [](const SenderNetwork::Datagram& d) { return d.to == To::kReceiver; };
    ASSERT_TRUE(net.start());
    net.reject(c.from, c.reason, c.named);
    net.run_until_idle();
    EXPECT_EQ(net.sender.state(), SenderState::kFailed);
    EXPECT_EQ(net.sender.error().code, ErrorCode::kRefused);
    EXPECT_EQ(net.sender.reject_reason(), c.reason);
    EXPECT_THAT(net.sender.error().text, HasSubstr(c.text));
    EXPECT_EQ(net.sent.back().header.type, MrpType::kRemove);
    EXPECT_EQ(net.sent.back().header.flags, static_cast<std::uint16_t>(c.reason));
  }
}

TEST(SenderRegistration, BelievesNoReceiverThatSpeaksOfAnother) {
  SenderNetwork net({2, 1, 1});
  net.lose = [](const SenderNetwork::Datagram& d) { return d.to == To::kReceiver; };
  ASSERT_TRUE(net.start());
  net.reject(host(1), MrpReject::kNotMember, {bare(2)});
  net.reject(host(1), MrpReject::kNotMember);
  net.reject(kSwitch, MrpReject::kNoRoute, {bare(9)});
  SenderNetwork::Datagram forged{To::kSender, host(1), {}, 0, net.sent.at(0)};
  forged.message.header.type = MrpType::kInstalled;
  forged.message.header.flags = static_cast<std::uint16_t>(MrpType::kInstall);
  net.under_way.push_back(forged);  // names both
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kInstalling);
}

TEST(SenderRegistration, FailsIfAnotherGroupOfTheHostHasItsVirtualQpn) {
  SenderNetwork net({2, 1, 1});
  net.is_taken = true;
  ASSERT_TRUE(net.start());
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kFailed);
  EXPECT_EQ(net.sender.reject_reason(), MrpReject::kIdInUse);
  EXPECT_THAT(net.sender.error().text, HasSubstr("has the virtual QPN 0xc12345"));
  EXPECT_THAT(net.sender.error().text, HasSubstr("with another virtual_qpn"));
  EXPECT_TRUE(net.connect_calls.empty()) << "no receiver has heard of it";
}

// Both groups of a process receive the datagrams of its control port.
TEST(SenderRegistration, IsNotEndedByARejectOfAnotherQueuePairWithItsVirtualQpn) {
  SenderNetwork net = active({2, 1, 1});
  net.reject(kSwitch, MrpReject::kIdInUse);
  net.under_way.front().message.sender_qpn = wire::Qpn(0x12);
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
}

TEST(SenderRegistration, EvictsAReceiverWhosePortIsDownAtOnce) {
  SenderNetwork net = active({3, 1, 1});
  net.report(1, wire::kMemberDown);
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
  EXPECT_EQ(net.sender.epoch(), 2);
  EXPECT_THAT(net.sender.receivers(), ::testing::ElementsAre(member(2), member(3)));
  EXPECT_EQ(net.sender.alias(), host(1));           // in feedback and for data, though it is gone
  EXPECT_EQ(net.receivers.at(host(1)).epoch(), 1);  // it will miss INSTALLs, if it only slept
  EXPECT_EQ(net.receivers.at(host(3)).state(), ReceiverMembership::State::kActive);
}

TEST(SenderRegistration, EndsAGroupThatSurvivesNoLoss) {
  SenderConfig config = sender_config();
  config.lost_receiver = LostMember::kEndsGroup;
  SenderNetwork net({3, 1, 1}, config);
  ASSERT_TRUE(net.start());
  net.run_until_idle();
  net.report(1, wire::kMemberDown);
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kFailed);
  EXPECT_EQ(net.sender.epoch(), 1);
  EXPECT_THAT(net.sender.error().text, ::testing::HasSubstr("was lost: its port is down"));
}

TEST(SenderRegistration, HeedsNoRefusalOfAnOlderEpoch) {
  SenderNetwork net = active({3, 1, 1});
  net.reject(kSwitch, MrpReject::kTableFull);
  const auto late = net.under_way.front();
  net.under_way.clear();
  net.report(1, wire::kMemberDown);
  net.run_until_idle();
  net.deliver(late);
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
}

TEST(SenderRegistration, SendsSwitchesTheRegionsOfTheRemainingReceivers) {
  SenderNetwork net({3, 1, 1});
  ASSERT_TRUE(net.start({{0, {1, 0xA, 0, 64}}, {1, {1, 0xB, 0, 64}}, {2, {1, 0xC, 0, 64}}}));
  net.run_until_idle();
  net.report(2, wire::kMemberDown);
  net.run_until_idle();
  const SenderGroupMessage& m = net.sent.back();
  ASSERT_EQ(m.region_count, 2u);
  EXPECT_EQ(m.regions[0], (SenderGroupMessage::Region{0, {1, 0xA, 0, 64}}));
  EXPECT_EQ(m.regions[1], (SenderGroupMessage::Region{1, {1, 0xC, 0, 64}}));
}

// It dies while the switches still know the list with the first.
TEST(SenderRegistration, EvictsASecondReceiverWhomASwitchOfTheEpochBeforeNames) {
  SenderNetwork net = active({3, 1, 1});
  net.report(1, wire::kMemberDown);
  net.report(2, wire::kMemberDown);
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
  EXPECT_EQ(net.sender.epoch(), 3);
  EXPECT_THAT(net.sender.receivers(), ::testing::ElementsAre(member(3)));
}

TEST(SenderRegistration, EvictsWhomASwitchHasHadNoWayToForFiveSeconds) {
  SenderNetwork net = active({3, 1, 1});
  for (auto t = 1s; t <= 5s; t += 1s) {
    net.reject(kSwitch, MrpReject::kNoRoute, {bare(2)});
    net.run(kStart + t);
    ASSERT_EQ(net.sender.epoch(), 1) << t.count();
  }
  net.reject(kSwitch, MrpReject::kNoRoute, {bare(2)});
  net.run_until_idle();
  EXPECT_EQ(net.sender.epoch(), 2);
  EXPECT_THAT(net.sender.receivers(), ::testing::ElementsAre(member(1), member(3)));
}

TEST(SenderRegistration, QueriesWhileAReceiverLagsAndEvictsOneThatIsSilentForFiveSeconds) {
  SenderNetwork net = active({3, 1, 1});
  net.send_request();
  for (auto t = 250ms; t <= 5s; t += 250ms) {
    net.report(2, wire::kMemberOwes, 17);
    net.run(kStart + t);
    ASSERT_EQ(net.sender.epoch(), 1) << t.count();
  }
  const auto queries = std::count_if(net.sent.begin(), net.sent.end(), [](const auto& m) {
    return m.header.type == MrpType::kQuery;
  });
  EXPECT_EQ(queries, 21);
  EXPECT_EQ(net.sender.alive_at(), Instant{});
  net.report(2, wire::kMemberOwes, 17);
  net.run_until_idle();
  EXPECT_EQ(net.sender.epoch(), 2);
  EXPECT_EQ(net.sender.alive_at(), net.now) << "the sender's next repeat is waited for";
  EXPECT_EQ(net.sender.receivers().size(), 2u);
}

TEST(SenderRegistration, QueriesForAsLongAsANamedReceiverIsSuspect) {
  SenderNetwork net = active({3, 1, 1});
  net.report(2, wire::kMemberOwes, 17);
  net.run(kStart + 10s);
  EXPECT_EQ(std::ranges::count(net.sent, MrpType::kQuery,
                               [](const SenderGroupMessage& m) { return m.header.type; }),
            10)
      << "2.5 s";
  for (const SenderGroupMessage& m : net.sent) {
    if (m.header.type == MrpType::kQuery) {
      EXPECT_EQ(m.header.flags, 0);
    }
  }
}

TEST(SenderRegistration, CountsPacketsOfAReceiverThatASwitchHadNoWayTo) {
  SenderNetwork net = active({3, 1, 1});
  const auto after = [&](Duration d) {
    net.run(kStart + d);
    net.reject(kSwitch, MrpReject::kNoRoute, {bare(2)});
  };
  for (auto t = 0s; t <= 3s; t += 1s) after(t);
  net.report(2, wire::kMemberOwes, 1);  // its first packet
  for (auto t = 4s; t <= 7s; t += 1s) after(t);
  net.run_until_idle();
  EXPECT_EQ(net.sender.epoch(), 1) << "it has answered after 3 s";
}

TEST(SenderRegistration, HasAtMostSixteenReceivers) {
  SenderNetwork net = active({16, 2, 1});
  EXPECT_EQ(net.sender.receivers().size(), 16u);
}

TEST(SenderRegistration, WaitsForAReceiverThatLagsButAnswers) {
  SenderNetwork net = active({3, 1, 1});
  net.send_request();
  std::uint32_t times = 0;
  for (auto t = 250ms; t <= 20s; t += 250ms) {
    net.report(2, wire::kMemberOwes, ++times);
    net.run(kStart + t);
  }
  EXPECT_EQ(net.sender.epoch(), 1);
  EXPECT_GE(net.sender.alive_at(), kStart + 19s);
}

TEST(SenderRegistration, EvictsWhoseQueuePairIsGone) {
  SenderNetwork net = active({3, 1, 1});
  net.reject(host(2), MrpReject::kNotMember, {bare(2)});
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kActive);
  EXPECT_EQ(net.sender.receivers().size(), 2u);
}

TEST(SenderRegistration, EndsWhenAReceiversOwnSideFails) {
  SenderNetwork net = active({3, 1, 1});
  Outbox out;
  net.receivers.at(host(2)).leave(out);
  net.under_way.push_back({To::kSender, host(2), {}, 0, out.of_sender_groups.at(0)});
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kFailed);
  EXPECT_EQ(net.receivers.at(host(1)).state(), ReceiverMembership::State::kGone);
  EXPECT_EQ(net.receivers.at(host(1)).reject_reason(), MrpReject::kMemberFailed);
}

TEST(SenderRegistration, FailsWithItsLastReceiver) {
  SenderNetwork net = active({1, 1, 1});
  net.report(1, wire::kMemberDown);
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kFailed);
  EXPECT_THAT(net.sender.error().text,
              HasSubstr("10.0.0.2 (qp 0x12), the last receiver, was lost"));
}

TEST(SenderRegistration, IsGoneWhenAllHaveAnsweredRemoveOrItsRepeatsAreUsedUp) {
  SenderNetwork net = active({3, 2, 2});
  net.remove();
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kGone);
  for (const auto& [address, receiver] : net.receivers) {
    EXPECT_EQ(receiver.state(), ReceiverMembership::State::kGone);
    EXPECT_EQ(receiver.reject_reason(), MrpReject::kNone);
  }
  SenderNetwork lonely = active({3, 2, 2});
  lonely.lose = [](const SenderNetwork::Datagram&) { return true; };
  lonely.sent.clear();
  lonely.remove();
  lonely.run(kStart + 1s);
  EXPECT_EQ(lonely.sender.state(), SenderState::kGone);
  EXPECT_EQ(lonely.sent.size(), 3u);
}

TEST(SenderRegistration, GivingUpNotifiesEveryReceiver) {
  SenderNetwork net = active({3, 2, 1});
  net.give_up("the program said so");
  net.run_until_idle();
  EXPECT_EQ(net.sender.state(), SenderState::kFailed);
  EXPECT_EQ(net.sender.error().text, "the program said so");
  for (const auto& [address, receiver] : net.receivers) {
    EXPECT_EQ(receiver.reject_reason(), MrpReject::kMemberFailed);
  }
}

TEST(SenderRegistration, RefusesListsThatCannotBe) {
  struct Case {
    std::vector<MrpMember> receivers;
    std::size_t regions;
    const char* text;
  };
  const Case cases[] = {
      {{}, 0, "at least one receiver"},
      {{member(1), member(1)}, 0, "10.0.0.2 is listed twice"},
      {{member(1), member(0)}, 0, "or is the sender's"},
      {SenderNetwork::names(17), 0, "17 receivers: a sender group has at most 16"},
      {{member(1)}, 41, "41 regions: the receivers of a sender group have at most 40"},
  };
  for (const Case& c : cases) {
    SenderRegistration sender(sender_config());
    std::vector<SenderGroupMessage::Region> regions(c.regions);
    Outbox out;
    const auto started = sender.start(kStart, c.receivers, regions, out);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(started.error().text, HasSubstr(c.text));
    EXPECT_TRUE(out.of_sender_groups.empty());
    EXPECT_EQ(sender.deadline(), wire::kNever);
  }
}

}  // namespace
}  // namespace cepheus::mrp
