// Reductions among real processes: every member's block reaches every member, or all get an error.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "libmcast/e2e/team.h"
#include "switch-emulator/live/status/late.h"

namespace cepheus::mcast::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const json kReduction = {{"group", "r"}, {"lane", "reduction"}};

struct Rounds {
  std::size_t size = 0;  // of a block
  int count = 0;
  int under_way = 1;
  bool is_mixed = false;  // smaller blocks, too
};

// All begin; the answers by receive().
void start(Team& team, const Rounds& rounds, const std::vector<int>& members) {
  for (const int i : members) {
    team[i].send({{"do", "gather"},
                  {"group", "r"},
                  {"seed", 7},
                  {"index", i},
                  {"members", team.size()},
                  {"size", rounds.size},
                  {"rounds", rounds.count},
                  {"under_way", rounds.under_way},
                  {"mixed", rounds.is_mixed}});
  }
}

std::vector<int> all(const Team& team) {
  std::vector<int> members;
  for (int i = 0; i < team.size(); ++i) members.push_back(i);
  return members;
}

void gather(Team& team, const Rounds& rounds) {
  start(team, rounds, all(team));
  for (int i = 0; i < team.size(); ++i) {
    const json reply = team[i].receive();
    EXPECT_EQ(reply.value("right", -1), rounds.count) << "member " << i << ": " << reply;
    EXPECT_EQ(reply.value("status", -100), MCAST_OK) << reply;
    if (i == 0) {
      std::cout << rounds.size << " bytes, " << rounds.under_way << " under way: median "
                << reply.value("median_us", 0.0) << " us, least " << reply.value("least_us", 0.0)
                << " us\n";
    }
  }
}

// Rounds by one operation and type after the other.
struct ValueRounds {
  std::size_t count = 0;  // values
  int rounds = 0;
  int under_way = 1;
  bool is_mixed = false;     // fewer values, too
  unsigned from = 0;         // the kind of the first round
  bool is_floating = false;  // of groups with floating_sums
};

void start_values(Team& team, const ValueRounds& values, const std::vector<int>& members) {
  for (const int i : members) {
    team[i].send({{"do", "reduce"},
                  {"group", "r"},
                  {"index", i},
                  {"members", team.size()},
                  {"count", values.count},
                  {"rounds", values.rounds},
                  {"under_way", values.under_way},
                  {"mixed", values.is_mixed},
                  {"from", values.from},
                  {"floating", values.is_floating}});
  }
}

void reduce_values(Team& team, const ValueRounds& values) {
  start_values(team, values, all(team));
  for (const int i : all(team)) {
    const json reply = team[i].receive();
    EXPECT_EQ(reply.value("status", -100), MCAST_OK) << "member " << i << ": " << reply;
    EXPECT_EQ(reply.value("right", -1), values.rounds) << "member " << i << ": " << reply;
  }
}

Fabric lossy_switches() { return Fabric::of_two_switches("", "[link]\nloss = 0.005\n"); }

TEST(Reduction, BringsAllBlocksToAllMembers) {
  Team team(kHosts);
  team.form(kReduction, 1);
  gather(team, {0, 50});
  gather(team, {8, 200});
  gather(team, {8, 200, 16});
  gather(team, {2500, 50, 4});  // a block in two packets
  gather(team, {8192, 20, 8});  // the longest: eight packets
}

TEST(Reduction, SurvivesLossOnEveryLink) {
  const Fabric fabric = Fabric::lossy(kHosts, 0.01);
  Team team(fabric, kHosts);
  team.form(kReduction);
  gather(team, {0, 50, 8});
  gather(team, {8192, 200, 8, true});
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

TEST(Reduction, CrossesTwoSwitchesThatLosePackets) {
  const Fabric fabric = lossy_switches();
  Team team(fabric, kHosts);
  team.form(kReduction, 3);
  gather(team, {8, 100});
  gather(team, {4096, 200, 4, true});
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

TEST(Reduction, ComputesOnValues) {
  Team team(kHosts);
  team.form(kReduction, 1);
  reduce_values(team, {1, 48});
  reduce_values(team, {500, 24});  // of 8 bytes: a packet
  reduce_values(team, {3000, 12});
}

// Of 64 MiB, and of all lengths, apart and in place.
TEST(Reduction, OfLongVectorsGoesInUnits) {
  Team team(kHosts);
  team.form(kReduction, 1);
  reduce_values(team, {8 << 20, 1});
  reduce_values(team, {30'000, 24, 4, true});
}

TEST(Reduction, OfLongVectorsKeepsToTheRateOfItsLinks) {
  const Fabric fabric =
      Fabric::of_two_switches("", "[link]\nrate = \"2Gbps\"\ndelay = \"100us\"\n");
  Team team(fabric, kHosts);
  team.form(kReduction);
  reduce_values(team, {8 << 20, 1});
  reduce_values(team, {30'000, 24, 3, true});
}

TEST(Reduction, OfLongVectorsCrossesSwitchesThatLosePackets) {
  const Fabric fabric = lossy_switches();
  Team team(fabric, kHosts);
  team.form(kReduction, 3);
  reduce_values(team, {30'000, 48, 3, true});
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

TEST(Reduction, ComputesOnValuesOverSwitchesThatLosePackets) {
  const Fabric fabric = lossy_switches();
  Team team(fabric, kHosts);
  team.form(kReduction, 3);
  reduce_values(team, {700, 110});
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

// The root has no host. With hosts of its own it would have paths with two members, and with one.
TEST(Reduction, AddsFloatingPointNumbersInPairsByMember) {
  std::string text = "[link]\nloss = 0.005\n[[switch]]\nname = \"spine\"\n";
  for (const std::string leaf : {"0", "1"}) {
    text += "[[switch]]\nname = \"s" + leaf + "\"\n[[trunk]]\nbetween = [\"spine\", \"s" + leaf +
            "\"]\n";
  }
  for (int i = 0; i < kHosts; ++i) {
    const std::string n = std::to_string(i);
    text += "[[host]]\nname = \"h" + n + "\"\naddress = \"10.0.0." + std::to_string(i + 1) +
            "\"\nswitch = \"s" + std::to_string(i / 2) + "\"\n";
  }
  const Fabric fabric = Fabric::of_text(text);
  Team team(fabric, kHosts);
  json group = kReduction;
  group["floating_sums"] = 1;
  team.form(group, 3);
  for (const int i : all(team)) {
    const json attr = team[i].send_request({{"do", "query"}, {"group", "r"}});
    EXPECT_TRUE(attr.value("is_flat", false)) << attr;
    EXPECT_TRUE(attr.value("is_ascending", false)) << attr;
  }
  reduce_values(team, {700, 50, 1, false, 0, true});
  reduce_values(team, {30'000, 20, 3, true, 0, true});
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

// The rounds of `members` end with an error, and none with a wrong result.
void expect_errors(Team& team, const std::vector<int>& members) {
  for (const int i : members) {
    const json reply = team[i].receive();
    EXPECT_LT(reply.value("status", 100), 0) << "member " << i << ": " << reply;
    EXPECT_EQ(reply.value("wrong", -1), 0) << reply;
  }
}

std::string reason(Team& team, int member) {
  return team[member].send_request({{"do", "await_failure"}, {"group", "r"}}).value("text", "");
}

template <typename Done>
void wait_until(Done done) {
  const auto limit = std::chrono::steady_clock::now() + 30s;
  while (!done() && std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_TRUE(done());
}

// By all switches, for hosts and by themselves.
std::uint64_t counted(const Fabric& fabric, const char* counter) {
  std::uint64_t sum = 0;
  const auto add = [&](const json& of) {
    sum += of.at("counters").value(counter, std::uint64_t{0});
  };
  const json status = fabric.status();
  for (const json& one : status.at("switches")) {
    add(one);
    for (const json& port : one.at("ports")) add(port);
  }
  return sum;
}

// Members reduce, and will for longer than any test.
void start_for_long(const Fabric& fabric, Team& team) {
  start(team, {8, 1'000'000, 8}, all(team));
  wait_until([&] { return counted(fabric, "reduction_units") > 100; });
}

TEST(Reduction, EndsForAllIfAMemberDies) {
  const Fabric fabric = lossy_switches();
  Team team(fabric, kHosts);
  team.form(kReduction);
  start_for_long(fabric, team);
  team[3].kill();
  expect_errors(team, {0, 1, 2});
  EXPECT_THAT(reason(team, 0), HasSubstr("10.0.0.4"));
}

TEST(Reduction, OfLongVectorsEndsForAllIfAMemberDies) {
  const Fabric fabric = lossy_switches();
  Team team(fabric, kHosts);
  team.form(kReduction);
  start_values(team, {1 << 20, 1'000'000, 2}, all(team));
  wait_until([&] { return counted(fabric, "reduction_units") > 1000; });
  team[3].kill();
  expect_errors(team, {0, 1, 2});
}

TEST(Reduction, EndsForAllIfAMemberLeaves) {
  Team team(3);
  team.form(kReduction, 1);
  team[2].send_request({{"do", "destroy"}, {"group", "r"}});
  start(team, {8, 1}, {0, 1});
  expect_errors(team, {0, 1});
  EXPECT_THAT(reason(team, 1), HasSubstr("10.0.0.3"));
}

TEST(Reduction, EndsForAllIfAMemberIsStopped) {
  Team team(3);
  team.form(kReduction);
  start(team, {8, 1}, {0, 1});
  team[2].send_request({{"do", "stop"}, {"group", "r"}});
  expect_errors(team, {0, 1});
}

TEST(Reduction, EndsForAllIfMembersReduceDifferentThings) {
  Team team(3);
  team.form(kReduction);
  start(team, {8, 1}, {0, 1});
  start(team, {16, 1}, {2});
  expect_errors(team, {0, 1, 2});
  EXPECT_THAT(reason(team, 0), HasSubstr("can't reduce"));
  EXPECT_THAT(reason(team, 2), HasSubstr("different reductions"));
}

TEST(Reduction, EndsForAllIfMembersReduceByDifferentOperations) {
  Team team(3);
  team.form(kReduction);
  start_values(team, {1, 1}, {0, 1});
  start_values(team, {.count = 1, .rounds = 1, .from = 1}, {2});
  expect_errors(team, {0, 1, 2});
  EXPECT_THAT(reason(team, 0), AllOf(HasSubstr("8 bytes to a sum of int64"),
                                     HasSubstr("8 bytes to a maximum of int64")));
  EXPECT_THAT(reason(team, 2), HasSubstr("different reductions"));
}

TEST(Reduction, EndsForAllIfTheFabricIsGone) {
  Fabric fabric = Fabric::of(2);
  Team team(fabric, 2);
  team.form(kReduction);
  start_for_long(fabric, team);
  fabric.kill();
  expect_errors(team, {0, 1});
}

// The hosts that `cepheusctl late` names, if they are late for this time or longer. The latest one
// comes first.
std::vector<std::string> late(const Fabric& fabric, wire::Duration least = {}) {
  const auto status = live::status_from_json(fabric.status());
  if (!status) return {status.error().text};
  std::vector<std::string> hosts;
  for (const auto& each : live::late_members(*status)) {
    if (each.late >= least) hosts.push_back(each.host.to_string());
  }
  return hosts;
}

TEST(Reduction, WaitsForALateMemberAndNamesIt) {
  const Fabric fabric = Fabric::of(3);
  Team team(fabric, 3);
  team.form(kReduction);
  for (const std::size_t size : {0u, 8u}) {
    EXPECT_THAT(late(fabric), IsEmpty());
    const std::uint64_t before = counted(fabric, "reduction_probes");
    start(team, {size, 1}, {0, 2});
    wait_until([&] { return late(fabric) == std::vector<std::string>{"10.0.0.2"}; });
    wait_until([&] { return counted(fabric, "reduction_probes") > before; });
    EXPECT_THAT(late(fabric), ElementsAre("10.0.0.2"));
    for (const int i : {0, 2}) EXPECT_FALSE(team[i].has_answered()) << size << " bytes";
    start(team, {size, 1}, {1});
    for (const int i : all(team)) EXPECT_EQ(team[i].receive().value("right", -1), 1);
  }
  EXPECT_THAT(late(fabric), IsEmpty());
}

// The members take turns to be late, so each switch has some. The time is printed, not judged.
TEST(Reduction, NamesTheLateMemberOfEachRound) {
  const char* const wanted = std::getenv("CEPHEUS_LATE_ROUNDS");
  const int rounds = wanted == nullptr ? 2 * kHosts : std::atoi(wanted);
  const Fabric fabric = Fabric::of_two_switches("");
  Team team(fabric, kHosts);
  team.form(kReduction, 1);
  int named_first = 0;
  std::chrono::duration<double, std::milli> slowest{0};
  for (int round = 0; round < rounds; ++round) {
    const int last = round % kHosts;
    const std::vector<std::string> host = {"10.0.0." + std::to_string(last + 1)};
    std::vector<int> others = all(team);
    std::erase(others, last);
    const auto begin = std::chrono::steady_clock::now();
    start(team, {8, 1}, others);
    wait_until([&] { return !late(fabric, 50ms).empty(); });
    named_first += late(fabric).front() == host.front();
    // Another member may have no core yet.
    wait_until([&] { return late(fabric) == host; });
    slowest = std::max<decltype(slowest)>(slowest, std::chrono::steady_clock::now() - begin);
    for (const int i : others) EXPECT_FALSE(team[i].has_answered()) << "round " << round;
    start(team, {8, 1}, {last});
    for (const int i : all(team)) EXPECT_EQ(team[i].receive().value("right", -1), 1);
  }
  EXPECT_THAT(late(fabric), IsEmpty());
  std::cout << "late by 50 ms: named first in " << named_first << " of " << rounds
            << " rounds; alone after " << slowest.count() << " ms at most\n";
}

TEST(Reduction, IsRefusedByASwitchWithoutMemory) {
  const Fabric fabric =
      Fabric::lossy(2, 0, "[[switch]]\nname = \"s0\"\nreduction_memory = \"64KiB\"\n");
  Team team(fabric, 2);
  const json names = team.create(kReduction);
  ASSERT_EQ(team.lead(0, "r", names).value("status", -100), MCAST_OK);
  for (const json& reply : team.await_outcome("r")) {
    EXPECT_EQ(reply.value("status", -100), MCAST_ERR_REJECTED) << reply;
    EXPECT_THAT(reply.value("text", ""), HasSubstr("memory"));
  }
}

}  // namespace
}  // namespace cepheus::mcast::e2e
