// Errors of a group that can't be set up, or that fails: alike at all members, with the remedy.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <mcast/query.h>

#include "libmcast/e2e/team.h"

namespace cepheus::mcast::e2e {
namespace {

using ::testing::HasSubstr;

// A link that loses everything, without its port going down.
void disconnect(const Fabric& fabric, const char* host, const char* direction) {
  fabric.send_request({{"ask", "link"}, {"link", host}, {"direction", direction}, {"loss", 1}});
}
// An unregistered group leaves the switch soon.
void expect_no_groups(const Fabric& fabric) {
  const auto limit = std::chrono::steady_clock::now() + 20s;
  while (!fabric.groups().empty() && std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_EQ(fabric.groups().size(), 0u) << fabric.groups();
}

TEST(GroupFailure, EveryMemberLearnsThatTheSwitchHasNoTableSpace) {
  const Fabric fabric({"--hosts", "4", "--max-groups", "0"});
  Team team(fabric, 4);
  const json names = team.create(kEager);
  EXPECT_EQ(team.lead(1, "e", names)["status"], MCAST_OK);
  const auto outcomes = team.await_outcome("e");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(outcomes[static_cast<std::size_t>(i)]["status"], MCAST_ERR_REJECTED);
    EXPECT_THAT(outcomes[static_cast<std::size_t>(i)].value("text", ""),
                HasSubstr(i == 1 ? "free groups or raise max_groups"
                                 : "10.0.0.2 gave the registration up: table full"));
  }
}

TEST(GroupFailure, WithoutAFabricThereIsNoDevice) {
  Member member("/nonexistent/fabric", 0);
  const json reply = member.send_request({{"do", "open"}});
  EXPECT_EQ(reply["status"], MCAST_ERR_NO_DEVICE);
  EXPECT_THAT(reply.value("text", ""), HasSubstr("/nonexistent/fabric"));
}

TEST(GroupFailure, RefusesBadCallsWithAReason) {
  Team team(2);
  const json names = team.create(kEager);
  const auto send_request = [&](const json& command) {
    const json reply = team[0].send_request(command);
    EXPECT_EQ(reply["status"], MCAST_ERR_INVALID) << command;
    return reply.value("text", "");
  };
  EXPECT_THAT(send_request({{"do", "start_send"}, {"group", "e"}, {"seed", 1}, {"size", 10}}),
              HasSubstr("not active yet"));
  EXPECT_THAT(send_request({{"do", "lead"}, {"group", "e"}, {"members", json::array({names[1]})}}),
              HasSubstr("the leader itself, is not among the members"));
  EXPECT_THAT(
      send_request({{"do", "lead"}, {"group", "e"}, {"members", {names[0], names[1], names[1]}}}),
      HasSubstr("10.0.0.2 is listed twice"));
  EXPECT_EQ(team.lead(0, "e", names)["status"], MCAST_OK);
  EXPECT_THAT(send_request({{"do", "lead"}, {"group", "e"}, {"members", names}}),
              HasSubstr("has a leader"));
  team.await_outcome("e");
  EXPECT_THAT(send_request({{"do", "start_send"}, {"group", "e"}, {"seed", 1}, {"size", 8193}}),
              HasSubstr("longer than max_eager"));
  EXPECT_THAT(send_request({{"do", "post"}, {"group", "e"}, {"size", 10}}),
              HasSubstr("on an eager lane"));
  team.broadcast("e", false, 0, {1, 8192, 1});  // nothing of that did harm
}

TEST(GroupFailure, AMessageLongerThanABufferFailsTheGroupWithAReason) {
  Team team(3);
  team.form(kBulk);
  team[1].send_request({{"do", "post"}, {"group", "b"}, {"size", 100'000}});
  team[2].send_request({{"do", "post"}, {"group", "b"}, {"size", 50'000}});
  team[0].send_request({{"do", "start_send"}, {"group", "b"}, {"seed", 1}, {"size", 100'000}});
  team.expect(0, {{"do", "await_send"}, {"group", "b"}}, MCAST_ERR_FABRIC);
  const json sender = team.expect(0, {{"do", "await_failure"}, {"group", "b"}}, MCAST_ERR_FABRIC);
  EXPECT_THAT(sender.value("text", ""),
              HasSubstr("a member's buffer was shorter than the message"));
  const json receiver = team.expect(2, {{"do", "await_failure"}, {"group", "b"}}, MCAST_ERR_FABRIC);
  // Its own reason, unless it lost its core after it had looked at its completions.
  EXPECT_THAT(receiver.value("text", ""),
              ::testing::AnyOf(HasSubstr("longer than the buffer posted"),
                               HasSubstr("the leader 10.0.0.1 ended the group")));
}

TEST(GroupFailure, EveryoneNoticesThatTheFabricIsGone) {
  Fabric fabric = Fabric::of(3);
  Team team(fabric, 3);
  team.form(kEager);
  team.form(kBulk);
  team[1].send_request({{"do", "post"}, {"group", "b"}, {"size", 1000}});
  fabric.kill();
  for (const char* group : {"e", "b"}) {
    for (const json& reply : team.request_all({{"do", "await_failure"}, {"group", group}})) {
      EXPECT_EQ(reply["status"], MCAST_ERR_FABRIC) << reply;
      EXPECT_THAT(reply.value("text", ""), HasSubstr("fresh groups"));
    }
  }
  const json posted =
      team[1].send_request({{"do", "expect"}, {"group", "b"}, {"seed", 1}, {"size", 1000}});
  EXPECT_EQ(posted["status"], MCAST_ERR_FABRIC);
}

TEST(GroupFailure, TheWatchdogNoticesAMemberThatIsDisconnectedAndKeepsWhatItMayLack) {
  const Fabric fabric = Fabric::of(3);
  Team team(fabric, 3, {{"do", "open"}, {"timeout_ms", 20'000}, {"progress_timeout_ms", 3000}});
  team.form(kEager);
  team.broadcast("e", false, 0, {5, 100, 1});
  disconnect(fabric, "h2", "down");
  for (int i = 0; i < 3; ++i) {
    team.expect(0, {{"do", "start_send"}, {"group", "e"}, {"seed", 10 + i}, {"size", 1000}},
                MCAST_OK);
  }
  const json failure = team.expect(0, {{"do", "await_failure"}, {"group", "e"}}, MCAST_ERR_FABRIC);
  EXPECT_THAT(failure.value("text", ""), HasSubstr("no send completed for 3000 ms"));
  EXPECT_EQ(team[0].send_request({{"do", "query"}, {"group", "e"}})["cause"], MCAST_CAUSE_WATCHDOG);
  team.expect(0, {{"do", "await_drained"}, {"group", "e"}}, MCAST_OK);
  const json kept = team[0].send_request(
      {{"do", "unacknowledged"}, {"group", "e"}, {"seed", 10}, {"size", 1000}});
  EXPECT_EQ(kept["count"], 3);
  EXPECT_TRUE(kept["match"]);
}

// Members that only receive have no failing sends: the leader informs them.
TEST(GroupFailure, OfTheLeaderIsReportedToHealthyReceivers) {
  const Fabric fabric = Fabric::of(4);
  Team team(fabric, 4, {{"do", "open"}, {"timeout_ms", 20'000}, {"progress_timeout_ms", 700}});
  team.form(kBulk);
  for (const int i : {1, 3}) team[i].send_request({{"do", "post"}, {"group", "b"}, {"size", 1000}});
  disconnect(fabric, "h2", "both");
  team[0].send_request({{"do", "start_send"}, {"group", "b"}, {"seed", 1}, {"size", 1000}});
  team.expect(0, {{"do", "await_failure"}, {"group", "b"}}, MCAST_ERR_FABRIC);
  for (const int i : {1, 3}) {
    const json failure =
        team.expect(i, {{"do", "await_failure"}, {"group", "b"}}, MCAST_ERR_FABRIC);
    EXPECT_THAT(failure.value("text", ""), HasSubstr("the leader 10.0.0.1 ended the group"));
    EXPECT_EQ(team[i].send_request({{"do", "query"}, {"group", "b"}})["cause"], MCAST_CAUSE_LEADER);
  }
  expect_no_groups(fabric);
}

TEST(GroupFailure, OfAnyMemberReachesAll) {
  const Fabric fabric = Fabric::of(4);
  Team team(fabric, 4);
  team.form(kBulk, 1);
  for (const int i : {0, 1, 3})
    team[i].send_request({{"do", "post"}, {"group", "b"}, {"size", 1000}});
  team.expect(2, {{"do", "stop"}, {"group", "b"}}, MCAST_OK);
  const json leader = team[1].send_request({{"do", "await_failure"}, {"group", "b"}});
  EXPECT_THAT(leader.value("text", ""), HasSubstr("10.0.0.3"));
  for (const int i : {0, 3}) {
    team.expect(i, {{"do", "await_failure"}, {"group", "b"}}, MCAST_ERR_FABRIC);
  }
  expect_no_groups(fabric);
}

TEST(GroupFailure, OfAReceiverThatNothingReachesIsFoundByItself) {
  const Fabric fabric = Fabric::of(3);
  Team team(fabric, 3);
  team.form(kBulk);
  for (const int i : {1, 2}) team[i].send_request({{"do", "post"}, {"group", "b"}, {"size", 1000}});
  disconnect(fabric, "h2", "both");
  const json failure = team.expect(2, {{"do", "await_failure"}, {"group", "b"}}, MCAST_ERR_FABRIC);
  EXPECT_THAT(failure.value("text", ""), HasSubstr("the leader 10.0.0.1 has not answered"));
  EXPECT_EQ(team[1].send_request({{"do", "query"}, {"group", "b"}})["state"], MCAST_GROUP_ACTIVE);
}

TEST(GroupFailure, AStoppedMemberHandsOverWhatHadArrived) {
  Team team(2);
  team.form(kEager);
  for (int i = 0; i < 5; ++i) {
    team[0].send_request({{"do", "start_send"}, {"group", "e"}, {"seed", i}, {"size", 500}});
  }
  EXPECT_EQ(team[0].send_request({{"do", "await_send"}, {"group", "e"}})["outstanding"], 0);
  team.expect(1, {{"do", "stop"}, {"group", "e"}}, MCAST_OK);
  team.expect(1, {{"do", "await_drained"}, {"group", "e"}}, MCAST_OK);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(team[1].send_request(
                  {{"do", "expect"}, {"group", "e"}, {"seed", i}, {"size", 500}})["match"],
              true);
  }
  const json reason = team[1].send_request({{"do", "await_failure"}, {"group", "e"}});
  EXPECT_EQ(reason.value("text", ""), "told to");
}

}  // namespace
}  // namespace cepheus::mcast::e2e
