// Members that die or stall in the middle of a broadcast, over a live fabric and without mpirun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/mcast.h>

#include <csignal>

#include "libmcast/e2e/team.h"

namespace cepheus::mcast::e2e {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const json kOpen = {{"do", "open"}, {"timeout_ms", 20'000}};
// Links so slow that a broadcast of kLong takes its time: half a second at 64 Mbit/s. Where the root
// dies it may take longer.
constexpr std::size_t kLong = 4 << 20;
std::string slow_links(const char* rate) {
  return "[link]\nrate = \"" + std::string(rate) +
         "\"\nqueue = \"64MiB\"\n"
         "[[host]]\nname = \"h0\"\naddress = \"10.0.0.1\"\n"
         "[[host]]\nname = \"h1\"\naddress = \"10.0.0.2\"\n"
         "[[host]]\nname = \"h2\"\naddress = \"10.0.0.3\"\n"
         "[[host]]\nname = \"h3\"\naddress = \"10.0.0.4\"\n";
}

json with(const char* what, std::uint64_t seed, std::size_t size) {
  return {{"do", what}, {"group", "b"}, {"seed", seed}, {"size", size}, {"imm", 0}};
}

// All but the root post. The root has sent a part.
void begin(const Fabric& fabric, Team& team, int root, std::size_t size) {
  for (int i = 0; i < team.size(); ++i) {
    if (i == root) continue;
    team.expect(i, with("post", 1, size), MCAST_INPROGRESS);
  }
  team.expect(root, with("start_send", 1, size), MCAST_INPROGRESS);
  for (int i = 0; i < team.size(); ++i) {
    if (i != root) team[i].send(with("expect", 1, size));
  }
  team[root].send(with("await_send", 1, size));
  const auto limit = Clock::now() + 60s;
  while (fabric.payload_from(root) < size / 8 && Clock::now() < limit) {
  }
}

void expect_survivors_complete(Team& team, int root, int lost) {
  for (int i = 0; i < team.size(); ++i) {
    if (i == lost) continue;
    const json reply = team[i].receive();
    const bool is_complete =
        i == root ? reply.value("status", -100) == MCAST_OK : reply.value("match", false);
    EXPECT_TRUE(is_complete)
        << "member " << i << ": " << reply << ", "
        << team[i].send_request({{"do", "await_failure"}, {"group", "b"}}).value("text", "");
  }
}

class KilledMember : public testing::TestWithParam<int> {};

// The root is member 1, the leader member 0.
TEST_P(KilledMember, IsEvictedAndTheOthersComplete) {
  const int lost = GetParam();
  const Fabric fabric = Fabric::of_text(slow_links("64Mbps"));
  Team team(fabric, 4, kOpen);
  team.form(kBulk);
  begin(fabric, team, 1, kLong);
  team[lost].kill();
  expect_survivors_complete(team, 1, lost);
  for (const json& group : fabric.groups()) EXPECT_EQ(group.at("paths").size(), 3u);
  // Its application learns the members without acknowledgements.
  if (lost != 0) {
    EXPECT_EQ(team[0].send_request({{"do", "query"}, {"group", "b"}})["members"], 3);
  }
}

INSTANTIATE_TEST_SUITE_P(LeaderOrNot, KilledMember, testing::Values(0, 2, 3));

// Its port stays up, so it counts as dead only after five silent seconds. Meanwhile no member gives
// up.
TEST(LostMember, ThatIsDisconnectedIsEvictedBeforeTheOthersGiveUp) {
  const Fabric fabric = Fabric::of(4);
  json open = kOpen;
  open["progress_timeout_ms"] = 20'000;  // the leader's process may run late
  Team team(fabric, 4, open);
  team.form(kBulk);
  fabric.send_request({{"ask", "link"}, {"link", "h2"}, {"direction", "both"}, {"loss", 1}});
  for (const int i : {0, 3}) team.expect(i, with("post", 1, 1000), MCAST_INPROGRESS);
  team.expect(1, with("start_send", 1, 1000), MCAST_INPROGRESS);
  team.expect(1, with("await_send", 1, 1000), MCAST_OK);
  for (const int i : {0, 3}) EXPECT_TRUE(team[i].send_request(with("expect", 1, 1000))["match"]);
  for (const json& group : fabric.groups()) EXPECT_EQ(group.at("paths").size(), 3u);
}

TEST(LostMember, LeavesAGroupThatGoesOnWithOtherRoots) {
  Team team(4, kOpen);
  team.form(kEager);
  team.broadcast("e", false, 2, {1, 1000, 1});
  team[3].kill();
  for (int round = 0; round < 3; ++round) {
    for (const int root : {0, 1, 2}) {
      const json message = {{"group", "e"}, {"seed", 9}, {"size", 2000}, {"imm", 1}};
      json send = message, expect = message;
      send["do"] = "start_send";
      expect["do"] = "expect";
      team.expect(root, send, MCAST_OK);
      EXPECT_EQ(team[root].send_request({{"do", "await_send"}, {"group", "e"}})["outstanding"], 0);
      for (const int i : {0, 1, 2}) {
        if (i == root) continue;
        EXPECT_TRUE(team[i].send_request(expect).value("match", false));
      }
    }
  }
}

TEST(KilledRoot, EndsTheGroupForAllInsteadOfLeavingThemWaiting) {
  const Fabric fabric = Fabric::of_text(slow_links("8Mbps"));
  Team team(fabric, 4, kOpen);
  team.form(kBulk);
  begin(fabric, team, 1, kLong);
  team[1].kill();
  for (const int i : {0, 2, 3}) EXPECT_EQ(team[i].receive()["status"], MCAST_ERR_FABRIC);
  const json leader = team[0].send_request({{"do", "await_failure"}, {"group", "b"}});
  EXPECT_THAT(leader.value("text", ""), HasSubstr("10.0.0.2"));
  const json other = team[2].send_request({{"do", "await_failure"}, {"group", "b"}});
  EXPECT_THAT(other.value("text", ""), HasSubstr("a member was lost"));
}

}  // namespace
}  // namespace cepheus::mcast::e2e
