// Sender groups among real processes over a live fabric: one fixed sender, member 0, and the others.
#include <gmock/gmock.h>

#include "libmcast/e2e/write_commands.h"

namespace cepheus::mcast::e2e {
namespace {

using testing::HasSubstr;

const json kSenderGroup = {
    {"group", "b"}, {"lane", "bulk"}, {"sender_group", 1}, {"virtual_qpn", 0xE00001}};

// Two leaves and two spines, `hosts` at each leaf. The given switches branch.
std::string leaf_spine(const std::string& sender_groups, int hosts, double loss = 0) {
  std::string text = "[link]\nloss = " + std::to_string(loss) + "\n";
  for (const char* name : {"l0", "l1", "s0", "s1"}) {
    text += std::string("[[switch]]\nname = \"") + name + "\"\nsender_groups = \"" + sender_groups +
            "\"\n";
  }
  for (int i = 0; i < 2 * hosts; ++i) {
    text += "[[host]]\nname = \"h" + std::to_string(i) + "\"\naddress = \"10.0.0." +
            std::to_string(i + 1) + "\"\nswitch = \"l" + std::to_string(i / hosts) + "\"\n";
  }
  for (const char* leaf : {"l0", "l1"}) {
    for (const char* spine : {"s0", "s1"}) {
      text += std::string("[[trunk]]\nbetween = [\"") + leaf + "\", \"" + spine + "\"]\n";
    }
  }
  return text;
}

void form(Team& team, std::size_t size = kSize, unsigned qpn = 0xE00001) {
  json group = kSenderGroup;
  group["virtual_qpn"] = qpn;
  const json names = team.create(group);
  json regions = json::array();
  for (int i = 0; i < team.size(); ++i) {
    team.expect(i, publish(size), MCAST_OK);
    const json published = team.expect(i, command("regions"), MCAST_OK);
    for (const json& each : published.value("regions", json::array())) regions.push_back(each);
  }
  team.register_group("b", names, 0, regions);
}

// Messages and WRITEs, with and without immediate, all from the one sender.
void send_and_write(Team& team, int rounds) {
  std::vector<json> writes;
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const std::size_t size = i % 5 == 0 ? kSize : 1 + static_cast<std::size_t>(i) * 997 % 20'000;
    writes.push_back(write(seed, i % 3 == 0 ? kSize - size : 0, size));
    write_from(team, 0, writes.back(), i % 2 == 0);
    team.broadcast("b", true, 0, {seed, i % 4 == 0 ? 0 : size * 3, static_cast<std::uint32_t>(i)},
                   i % 2 == 0);
  }
  std::vector<std::vector<json>> written(static_cast<std::size_t>(team.size()), writes);
  written[0].clear();
  expect_regions(team, written);
}

TEST(SenderGroup, ReachesItsReceiversAndTheirRegions) {
  Team team(4);
  form(team);
  send_and_write(team, 20);
  for (int i = 0; i < team.size(); ++i) {
    const json q = team[i].send_request({{"do", "query"}, {"group", "b"}});
    EXPECT_EQ(q["is_leader"], i == 0 ? 1 : 0) << q;
    EXPECT_EQ(q["members"], i == 0 ? 4 : 0) << q;
  }
}

TEST(SenderGroup, SurvivesOnePercentLossOnEveryLink) {
  const Fabric fabric = Fabric::lossy(4, 0.01);
  Team team(fabric, 4);
  form(team);
  send_and_write(team, 12);
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

class SenderGroupOnLeafSpine : public testing::TestWithParam<const char*> {};

TEST_P(SenderGroupOnLeafSpine, ReachesReceiversInBothRacks) {
  const Fabric fabric = Fabric::of_text(leaf_spine(GetParam(), 4));
  Team team(fabric, 8);
  form(team, kSize);
  send_and_write(team, 8);
}

TEST_P(SenderGroupOnLeafSpine, SurvivesLossOnEveryLinkAndTrunk) {
  const Fabric fabric = Fabric::of_text(leaf_spine(GetParam(), 2, 0.01));
  Team team(fabric, 4);
  form(team);
  send_and_write(team, 8);
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(Branching, SenderGroupOnLeafSpine, testing::Values("everywhere", "racks"));

TEST(SenderGroup, IsRefusedWhereSwitchesServeNone) {
  const Fabric fabric = Fabric::of_text(leaf_spine("off", 2));
  Team team(fabric, 4);
  const json names = team.create(kSenderGroup);
  EXPECT_EQ(team.lead(0, "b", names).value("status", -100), MCAST_OK);
  const json outcome =
      team.expect(0, {{"do", "await_outcome"}, {"group", "b"}}, MCAST_ERR_REJECTED);
  EXPECT_THAT(outcome.value("text", ""), HasSubstr("the switches serve no sender groups"));
}

TEST(SenderGroup, SendsOfReceiversAreRefused) {
  Team team(3);
  form(team);
  const json reply = team.expect(1, write(1, 0, 100), MCAST_ERR_INVALID);
  EXPECT_THAT(reply.value("text", ""), HasSubstr("only the member that leads"));
}

TEST(SenderGroup, AWriteBeyondARegionIsRefused) {
  const Fabric fabric = Fabric::of_text(leaf_spine("everywhere", 2));
  Team team(fabric, 4);
  form(team);
  expect_failed_write(team, write(1, kSize - 10, 20));
  expect_regions(team, std::vector<std::vector<json>>(4));
}

// The alias (all feedback has its address), or another receiver.
class KilledReceiver : public testing::TestWithParam<int> {};

TEST_P(KilledReceiver, IsRemovedAndTheOthersGoOn) {
  const int lost = GetParam();
  const Fabric fabric = Fabric::of_text(leaf_spine("everywhere", 2));
  Team team(fabric, 4);
  form(team);
  team[lost].kill();
  write_from(team, 0, write(5, 0, kSize), false);
  EXPECT_EQ(team[0].send_request({{"do", "query"}, {"group", "b"}})["members"], 3);
  // And again, by the remaining members.
  write_from(team, 0, write(6, 100, 1000), false);
  json holds = command("holds");
  holds["writes"] = {write(5, 0, kSize), write(6, 100, 1000)};
  for (int i = 1; i < team.size(); ++i) {
    if (i == lost) continue;
    EXPECT_TRUE(team[i].send_request(holds).value("match", false)) << "member " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AliasOrNot, KilledReceiver, testing::Values(1, 3));

// Its port stays up: it is silent for five seconds before it is taken for dead.
TEST(SenderGroup, EvictsAReceiverThatIsDisconnected) {
  const Fabric fabric = Fabric::of(4);
  Team team(fabric, 4);
  form(team);
  fabric.send_request({{"ask", "link"}, {"link", "h2"}, {"direction", "both"}, {"loss", 1}});
  write_from(team, 0, write(5, 0, kSize), false);
  const json alone = team[2].send_request(command("await_failure"));
  EXPECT_THAT(alone.value("text", ""), HasSubstr("the sender 10.0.0.1 has been silent for"));
}

TEST(SenderGroup, ReceiversAreNotifiedThatTheirSenderIsGone) {
  const Fabric fabric = Fabric::of_text(leaf_spine("racks", 2));
  Team team(fabric, 4);
  form(team);
  team[0].kill();
  for (int i = 1; i < team.size(); ++i) {
    const json ended = team[i].send_request(command("await_failure"));
    EXPECT_LT(ended.value("status", 0), 0) << ended;
  }
}

TEST(SenderGroup, EndsForAllWhenItsSenderDestroysIt) {
  Team team(3);
  for (int i = 0; i < 3; ++i) {       // state of an earlier one does not disturb a later one
    form(team, kSize, 0xE00001 + i);  // the last one's removal may not have ended
    send_and_write(team, 2);
    team[0].send_request(command("destroy"));
    for (int m = 1; m < team.size(); ++m) {
      team.expect(m, command("await_failure"), MCAST_ERR_CANCELED);
      team[m].send_request(command("destroy"));
    }
  }
}

}  // namespace
}  // namespace cepheus::mcast::e2e
