// Groups at work: four processes on four hosts of a live fabric.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "libmcast/e2e/team.h"

namespace cepheus::mcast::e2e {
namespace {

// Messages of random sizes from rotating roots, on both lanes.
void rotate_roots(Team& team, int rounds, std::size_t most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    const std::size_t size = i % 5 == 0 ? 0 : random() % (most + 1);
    team.broadcast("b", true, i % kHosts, {random(), size, static_cast<std::uint32_t>(i)},
                   i % 3 == 0);
    team.broadcast("e", false, (i + 1) % kHosts,
                   {random(), random() % 8193, static_cast<std::uint32_t>(random())});
  }
}

TEST(GroupTraffic, ReachesEveryMemberFromEveryRootOnBothLanes) {
  Team team(kHosts);
  team.form(kEager, 0);
  team.form(kBulk, 2);
  rotate_roots(team, 60, std::size_t{1} << 20, 1);
  for (int i = 0; i < kHosts; ++i) {
    for (const char* group : {"e", "b"}) {
      const json q = team[i].send_request({{"do", "query"}, {"group", group}});
      EXPECT_EQ(q["messages_sent"], 15) << q;
      EXPECT_EQ(q["messages_received"], 45) << q;
      EXPECT_EQ(q["sends_outstanding"], 0) << q;
      EXPECT_EQ(q["is_leader"] == 1, i == (group[0] == 'e' ? 0 : 2)) << q;
      EXPECT_EQ(q["members"], q["is_leader"] == 1 ? kHosts : 0) << q;
    }
  }
}

TEST(GroupTraffic, CrossesTheRootsLinkOnce) {
  const Fabric fabric = Fabric::of(kHosts);
  Team team(fabric, kHosts);
  team.form(kBulk);
  constexpr std::size_t kSize = std::size_t{4} << 20;
  // The best of a few: on a busy machine an acknowledgement may come after the sender's time limit.
  std::uint64_t sent = ~std::uint64_t{0};
  for (int i = 0; i < 5 && sent > kSize; ++i) {
    const std::uint64_t before = fabric.payload_from(1);
    team.broadcast("b", true, 1, {7, kSize, 0}, true);
    sent = std::min(sent, fabric.payload_from(1) - before);
  }
  EXPECT_GE(sent, kSize);
  EXPECT_LE(sent, kSize + kSize / 10);
}

TEST(GroupTraffic, SurvivesOnePercentLossOnEveryLink) {
  const Fabric fabric = Fabric::lossy(kHosts, 0.01);
  Team team(fabric, kHosts);
  team.form(kEager, 1);
  team.form(kBulk, 3);
  rotate_roots(team, 20, std::size_t{1} << 20, 2);
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

TEST(GroupTraffic, AMemberThatKeepsItsBuffersHoldsTheSenderBack) {
  Team team(2);
  const json names = team.create(
      {{"group", "e"}, {"lane", "eager"}, {"recv_depth", 4}, {"send_depth", 16}, {"keep", true}});
  ASSERT_EQ(team.lead(0, "e", names).value("status", -100), MCAST_OK);
  team.await_outcome("e");
  const json send = {
      {"do", "start_send"}, {"group", "e"}, {"seed", 5}, {"size", 100}, {"once", true}};
  for (int i = 0; i < 16; ++i) team.expect(0, send, MCAST_OK);
  const json expect = {{"do", "expect"}, {"group", "e"}, {"seed", 5}, {"size", 100}};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(team[1].send_request(expect).value("match", false));
  // Four are kept, so twelve can't be acknowledged: after at most four more the sender has no free
  // buffer.
  json refused;
  for (int i = 0; i < 5 && refused.empty(); ++i) {
    const json reply = team[0].send_request(send);
    if (reply["status"] != MCAST_OK) refused = reply;
  }
  EXPECT_EQ(refused.value("status", -100), MCAST_ERR_AGAIN);
  EXPECT_THAT(refused.value("text", ""), ::testing::HasSubstr("mcast_progress()"));
  EXPECT_EQ(team[1].send_request({{"do", "query"}, {"group", "e"}})["messages_received"], 4);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(team[1].send_request({{"do", "release"}, {"group", "e"}})["released"], 4);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(team[1].send_request(expect).value("match", false));
  }
}

TEST(GroupTraffic, ComesAndGoesFiftyTimesWithoutATrace) {
  const Fabric fabric = Fabric::of(kHosts);
  Team team(fabric, kHosts);
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 50 && !::testing::Test::HasFailure(); ++i) {
    team.form(i % 2 == 0 ? kEager : kBulk, i % kHosts);
    const char* group = i % 2 == 0 ? "e" : "b";
    team.broadcast(group, i % 2 != 0, (i + 1) % kHosts, {static_cast<std::uint64_t>(i), 5000, 9});
    ids.insert(
        team[0].send_request({{"do", "query"}, {"group", group}})["mcst_id"].get<std::uint64_t>());
    EXPECT_EQ(fabric.groups().size(), 1u);
    team.destroy(group);
  }
  EXPECT_EQ(ids.size(), 50u);  // no address is used again before its rest
  team.expect_all({{"do", "close"}}, MCAST_OK);
  EXPECT_EQ(fabric.groups().size(), 0u) << fabric.groups();
}

TEST(Context, ThatIsOpenedAgainWhileItsLastUserClosesItKeepsWhatIsMadeThen) {
  Team team(1);
  team.create(kBulk);
  const json reply = team[0].send_request({{"do", "close_while_another_opens"}, {"group", "b"}});
  EXPECT_EQ(reply.value("opened", false), true) << reply;
  EXPECT_EQ(reply.value("kept", false), true) << reply;
  team.expect(0, {{"do", "close"}}, MCAST_OK);
}

TEST(GroupTraffic, ManyThreadsMayProgressAtOnce) {
  Team team(kHosts);
  team.request_all({{"do", "threads"}, {"count", 2}});
  team.form(kEager, 0);
  team.form(kBulk, 1);
  rotate_roots(team, 12, 100'000, 3);
  team.destroy("e");
  team.form(kEager, 2);  // groups come and go while others progress
  rotate_roots(team, 4, 100'000, 4);
  team.expect_all({{"do", "close"}}, MCAST_OK);
}

TEST(GroupTraffic, AForkedChildDoesNotDisturbItsParent) {
  Team team(2);
  team.form(kEager);
  team.form(kBulk);
  for (const json& reply : team.request_all({{"do", "fork"}})) EXPECT_EQ(reply["child_exit"], 0);
  team.broadcast("b", true, 0, {3, 300'000, 1});
  team.broadcast("e", false, 1, {4, 3'000, 2});
}

}  // namespace
}  // namespace cepheus::mcast::e2e
