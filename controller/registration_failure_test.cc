// Registrations that fail: missing members, refusals, and forged refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reject_text.h"
#include "controller/test_network.h"

namespace cepheus::mrp {
namespace {

using namespace test;
using ::testing::HasSubstr;
using State = Registration::State;
using wire::ErrorCode;
using wire::MrpReject;
using wire::MrpType;

TEST(Registration, TimesOutWhileTheFabricAnswers) {
  Network net(4, leader_config(2s, 1s));
  net.lose = [&](const Network::Datagram& d) {
    return is(d, MrpType::kConfirm) && net.now < kStart + (d.from == host(1) ? 700ms : 1400ms);
  };
  net.unplugged = host(3);
  ASSERT_TRUE(net.start());
  net.run(kStart + 1990ms);
  EXPECT_EQ(net.leader.state(), State::kRegistering);
  net.run(kStart + 2s);
  EXPECT_EQ(net.leader.state(), State::kFailed);
  EXPECT_THAT(net.leader.error().text, HasSubstr("10.0.0.4 (qp 0x14) did not confirm within 2 s"));
}

TEST(Registration, EndsAfterItsSilenceIfNobodyAnswersAtAll) {
  Network net(3, leader_config(20s, 1s));
  net.serves_groups = false;
  ASSERT_TRUE(net.start());
  net.run(kStart + 990ms);
  EXPECT_EQ(net.leader.state(), State::kRegistering);
  net.run(kStart + 1s);
  EXPECT_EQ(net.leader.state(), State::kFailed);
}

TEST(Registration, TimesOutNamingWhoIsMissingAndUnregistersAll) {
  Network net(4);
  net.unplugged = host(2);
  ASSERT_TRUE(net.start());
  net.run(kStart + 2s);
  EXPECT_EQ(net.leader.state(), State::kFailed);
  EXPECT_EQ(net.leader.error().code, ErrorCode::kTimedOut);
  EXPECT_EQ(net.leader.reject_reason(), MrpReject::kNone);
  EXPECT_THAT(net.leader.error().text, HasSubstr("10.0.0.3 (qp 0x13) did not confirm within 1 s"));
  EXPECT_THAT(net.leader.error().text, Not(HasSubstr("10.0.0.2")));
  EXPECT_EQ(net.hosts.at(host(1)).state(), Membership::State::kFailed);
  EXPECT_EQ(net.hosts.at(host(1)).reject_reason(), MrpReject::kNone);
  EXPECT_EQ(net.hosts.at(host(3)).state(), Membership::State::kFailed);
  EXPECT_EQ(net.leader.deadline(), wire::kNever);
}

TEST(RejectText, NamesUpToFourMembersAndCountsTheOthers) {
  const auto text = [](std::uint32_t count) {
    std::vector<MrpMember> named;
    for (std::uint32_t i = 1; i <= count; ++i) named.push_back(bare(i));
    return reject_text(MrpReject::kNoRoute, kSwitch, kGroup, named);
  };
  const std::string three = "10.0.0.2 (qp 0x12), 10.0.0.3 (qp 0x13), 10.0.0.4 (qp 0x14)";
  EXPECT_THAT(text(0), HasSubstr("no route to a member: "));
  EXPECT_THAT(text(1), HasSubstr("no route to 10.0.0.2 (qp 0x12): "));
  EXPECT_THAT(text(4), HasSubstr("no route to " + three + ", 10.0.0.5 (qp 0x15): "));
  EXPECT_THAT(text(5), HasSubstr(three + ", 10.0.0.5 (qp 0x15) and 1 more: "));
}

TEST(Registration, NamesTheRefusingMemberAndTheRemedy) {
  struct Case {
    MrpReject reason;
    std::vector<MrpMember> named;
    const char* text;
  };
  const Case cases[] = {
      {MrpReject::kTableFull, {}, "free groups or raise max_groups"},
      {MrpReject::kNoRoute,
       {member(2)},
       "no route to 10.0.0.3 (qp 0x13): see whether trunks are down"},
      {MrpReject::kIdInUse, {}, "198.18.3.4 belongs to another leader"},
      {MrpReject::kIdInUse, {member(1)}, "10.0.0.2 (qp 0x12) already belongs to another leader"},
      {MrpReject::kNotMember, {member(1)}, "10.0.0.2 (qp 0x12) is unknown to its host"},
      {MrpReject::kNotAuthorised, {}, "give the leader the fabric's key"},
      {MrpReject::kVersion, {}, "bring leader, members and switches to the same version"},
      {MrpReject::kTooManyPaths, {member(2)}, "raise max_paths"},
      {MrpReject::kQuota, {}, "free groups or raise max_groups_per_host"},
      {MrpReject::kIncomplete, {}, "create fresh groups"},
      {MrpReject::kNoMemory, {}, "lower reduction_window"},
      {MrpReject::kNotServed, {}, "bring leader and switches to the same version"},
      {static_cast<MrpReject>(99), {}, "a reason that this version does not have (99)"},
  };
  for (const Case& c : cases) {
    StartedNetwork net(3);
    net.deliver({Ipv4(10, 0, 255, 1), reject(c.reason, c.named)});
    EXPECT_EQ(net.leader.state(), State::kFailed);
    EXPECT_EQ(net.leader.error().code, ErrorCode::kRefused);
    EXPECT_EQ(net.leader.reject_reason(), c.reason);
    const bool has_forgotten = c.reason == MrpReject::kIncomplete;
    EXPECT_THAT(net.leader.error().text,
                HasSubstr(has_forgotten ? "10.0.255.1 has forgotten members: "
                                        : "10.0.255.1 refused the registration: "));
    EXPECT_THAT(net.leader.error().text, HasSubstr(c.text));
  }
}

TEST(Registration, EndsAReductionWhoseMembersDiffer) {
  StartedNetwork net(3);
  net.run_until_idle();
  MrpMember leader = member(0), other = member(1);
  leader.flags = 0x10, leader.token = 64;
  other.flags = other.token = 0;
  net.deliver({host(1), reject(MrpReject::kMismatch, {leader, other})});
  EXPECT_EQ(net.leader.state(), State::kActive) << "no member may send it";
  net.deliver({Ipv4(10, 0, 255, 1), reject(MrpReject::kMismatch, {leader, other})});
  EXPECT_EQ(net.leader.state(), State::kFailed);
  EXPECT_THAT(
      net.leader.error().text,
      HasSubstr("can't reduce: 10.0.0.1 (qp 0x11) has contributed 64 bytes, and "
                "10.0.0.2 (qp 0x12) has contributed nothing, as to a barrier, to one unit"));
}

TEST(Registration, NamesTheOperationsOfMembersThatDiffer) {
  StartedNetwork net(3);
  net.run_until_idle();
  MrpMember one = member(1), other = member(2);
  one.flags = 0x97, one.token = 8;
  other.flags = 0xFF, other.token = 4;
  net.deliver({Ipv4(10, 0, 255, 1), reject(MrpReject::kMismatch, {one, other})});
  EXPECT_THAT(net.leader.error().text,
              HasSubstr("10.0.0.2 (qp 0x12) has contributed 8 bytes to a sum of int64, and "
                        "10.0.0.3 (qp 0x13) has contributed 4 bytes to operation 15 of type 15"));
}

TEST(Registration, NamesAContributionThatASwitchDoesNotServe) {
  StartedNetwork net(3);
  net.run_until_idle();
  MrpMember one = member(1);
  one.flags = 0x99, one.token = 8;
  net.deliver({host(1), reject(MrpReject::kOperation, {one})});
  EXPECT_EQ(net.leader.state(), State::kActive) << "no member may send it";
  net.deliver({Ipv4(10, 0, 255, 1), reject(MrpReject::kOperation, {one})});
  EXPECT_THAT(net.leader.error().text,
              HasSubstr("can't reduce: 10.0.0.2 (qp 0x12) has contributed 8 bytes to a sum of "
                        "double, which this switch does not serve: "));
}

TEST(Registration, NamesAContributionThatDividesAValue) {
  MrpMember one = member(1);
  one.flags = 0x97, one.token = 12;
  const std::array named{one};
  const Ipv4 from(10, 0, 255, 1);
  EXPECT_THAT(reject_text(MrpReject::kOperation, from, kGroup, named),
              HasSubstr("12 bytes to a sum of int64, and these are not whole values: bring that "
                        "member and the switches to the same version"));
  EXPECT_THAT(reject_text(MrpReject::kOperation, from, kGroup, {}),
              HasSubstr("a member has contributed to an operation that this switch does not "
                        "serve: "));
  EXPECT_THAT(reject_text(MrpReject::kMismatch, from, kGroup, {}),
              HasSubstr("two members have contributed different things, to one unit: "));
}

TEST(Registration, BelievesNoRejectAboutStrangersOrItself) {
  StartedNetwork net(3);
  for (const std::uint32_t about : {0u, 9u}) {
    net.deliver({host(9), reject(MrpReject::kMemberFailed, {member(about)})});
  }
  net.run_until_idle();
  EXPECT_EQ(net.leader.state(), State::kActive);
}

TEST(Registration, BelievesNoMembersRejectButAboutItself) {
  StartedNetwork net(3);
  net.deliver({host(1), reject(MrpReject::kMemberFailed, {member(2)})});
  net.deliver({host(1), reject(MrpReject::kMemberFailed, {member(1), member(2)})});
  net.deliver({host(1), reject(MrpReject::kTableFull)});  // as a switch would
  EXPECT_EQ(net.leader.state(), State::kRegistering);
  net.run_until_idle();
  EXPECT_EQ(net.leader.state(), State::kActive);
  StartedNetwork other(3);
  other.deliver({host(1), reject(MrpReject::kVersion)});  // it could not read the named member
  EXPECT_EQ(other.leader.state(), State::kFailed);
}

TEST(Registration, EndsWithTheMemberNamedWhoseRegionDoesNotHoldAWrite) {
  for (const bool of_leader : {false, true}) {
    StartedNetwork net(3);
    net.run_until_idle();
    const MrpMessage refusal = reject(MrpReject::kRemoteAccess, {member(of_leader ? 0 : 2)});
    net.deliver({host(1), refusal});
    EXPECT_EQ(net.leader.state(), State::kActive) << "a member says so of another";
    net.deliver({test::kSwitch, refusal});
    EXPECT_EQ(net.leader.reject_reason(), MrpReject::kRemoteAccess);
    const std::string whose = of_leader ? "10.0.0.1 (qp 0x11)" : "10.0.0.3 (qp 0x13)";
    EXPECT_THAT(net.leader.error().text, HasSubstr("refused a WRITE: " + whose));
  }
}

TEST(Registration, EndsWithTheMemberNamedBehindAPortThatPacketsAreTooLongFor) {
  for (const std::uint32_t towards : {0u, 2u}) {
    StartedNetwork net(3);
    net.run_until_idle();
    net.deliver({host(1), reject(MrpReject::kTooLong, {member(towards)})});
    EXPECT_EQ(net.leader.state(), State::kActive) << "a member reports nothing of switches";
    net.deliver({test::kSwitch, reject(MrpReject::kTooLong, {member(towards)})});
    EXPECT_EQ(net.leader.reject_reason(), MrpReject::kTooLong);
    EXPECT_THAT(net.leader.error().text,
                HasSubstr("10.255.0.1 dropped a packet of the group: it does not fit through the "
                          "port towards " +
                          mrp::to_string(member(towards))));
  }
}

TEST(Registration, EndsWithTheMemberNamedWhoPublishesWhereNothingIsRewritten) {
  StartedNetwork net(3);
  net.deliver({test::kSwitch, reject(MrpReject::kWriteMode, {member(0)})});
  EXPECT_THAT(net.leader.error().text,
              HasSubstr("can't serve the group's WRITEs: 10.0.0.1 (qp 0x11) publishes"));
  EXPECT_THAT(net.leader.error().text, HasSubstr("same_key"));
}

}  // namespace
}  // namespace cepheus::mrp
