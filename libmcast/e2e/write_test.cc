// Multicast WRITEs among real processes: guard pages lie around every region, so that a byte
// written beside one ends the process that it is written in.
#include <gmock/gmock.h>

#include <filesystem>

#include "libmcast/e2e/write_commands.h"

namespace cepheus::mcast::e2e {
namespace {

using testing::HasSubstr;

// A group whose members have published `size` bytes each, member 2 perhaps fewer.
void form(Team& team, std::size_t size, std::size_t of_member_2, json lane = kBulk) {
  const json names = team.create(lane);
  for (int i = 0; i < team.size(); ++i) {
    team.expect(i, publish(i == 2 ? of_member_2 : size), MCAST_OK);
  }
  team.register_group("b", names);
}

// WRITEs of rotating roots to changing places, some with immediate, between messages. `make_write`
// makes the command from root, seed, offset and size.
template <typename MakeWrite>
void write_and_send(Team& team, int rounds, bool with_immediate_always, MakeWrite make_write) {
  std::vector<std::vector<json>> written(static_cast<std::size_t>(team.size()));
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    const int root = i % team.size();
    const std::size_t size = i % 5 == 0 ? kSize : 1 + static_cast<std::size_t>(i) * 997 % 20'000;
    const std::size_t offset = i % 3 == 0 ? kSize - size : 0;
    const json what = make_write(root, static_cast<std::uint64_t>(i), offset, size);
    // Untold ones are followed by a message: the next root has to know.
    write_from(team, root, what, with_immediate_always || i % 2 == 0);
    for (int m = 0; m < team.size(); ++m) {
      if (m != root) written[static_cast<std::size_t>(m)].push_back(what);
    }
    if (i % 2 != 0) team.broadcast("b", true, root, {static_cast<std::uint64_t>(i), 100, 0});
  }
  expect_regions(team, written);
}

void write_and_send(Team& team, int rounds) {
  write_and_send(team, rounds, false,
                 [](int, std::uint64_t seed, std::size_t offset, std::size_t size) {
                   return write(seed, offset, size);
                 });
}

TEST(MulticastWrite, ReachesEveryMembersRegionFromEveryRoot) {
  const Fabric fabric = Fabric::of(kHosts);
  Team team(fabric, kHosts);
  form(team, kSize, kSize);
  write_and_send(team, 24);
  const json paths = fabric.groups().at(0).at("paths");
  for (const json& path : paths) EXPECT_EQ(path.at("regions").at(0).at("length"), kSize) << path;
}

TEST(MulticastWrite, ReachesRegionsOverLinksThatLosePackets) {
  const Fabric fabric = Fabric::lossy(kHosts, 0.01);
  Team team(fabric, kHosts);
  form(team, kSize, kSize);
  write_and_send(team, 12);
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

TEST(MulticastWrite, ReachesRegionsBehindOtherSwitches) {
  const Fabric fabric({"--shape", "leaf-spine:2x2x2"});
  Team team(fabric, kHosts);
  form(team, kSize, kSize);
  write_and_send(team, 12);
}

TEST(MulticastWrite, ReachesTheSameAddressUnderTheSameKeyOfAll) {
  const Fabric fabric =
      Fabric::lossy(kHosts, 0, "[[switch]]\nname = \"s0\"\nwrite_mode = \"same-key\"\n");
  Team team(fabric, kHosts);
  json lane = kBulk;
  lane["same_key"] = 1;
  form(team, kSize, kSize, lane);
  write_and_send(team, 12);
}

// --- WRITEs with a target of their own each.

Fabric per_request_fabric(const std::string& more = "") {
  return Fabric::of_two_switches("write_mode = \"per-request\"\n", more);
}

json announced_lane() {
  json lane = kBulk;
  lane["per_request"] = 1;
  return lane;
}

// Each member's memory, kSize bytes of which are registered for others' WRITEs, member 2's perhaps
// fewer.
json open_memory(Team& team, std::size_t of_member_2 = kSize) {
  json targets = json::array();
  for (int i = 0; i < team.size(); ++i) {
    json open = command("open_memory");
    open["memory"] = kSize;
    open["size"] = open["registered"] = i == 2 ? of_member_2 : kSize;
    targets.push_back(team.expect(i, open, MCAST_OK).value("target", json()));
  }
  return targets;
}

json write_to(const json& targets, int root, std::uint64_t seed, std::size_t offset,
              std::size_t size) {
  json what = write(seed, offset, size);
  what["targets"] = targets;
  what["targets"].erase(static_cast<std::size_t>(root));
  return what;
}

void announce_and_write(Team& team, int rounds) {
  team.form(announced_lane());
  const json targets = open_memory(team);
  write_and_send(team, rounds, true,
                 [&](int root, std::uint64_t seed, std::size_t offset, std::size_t size) {
                   return write_to(targets, root, seed, offset, size);
                 });
}

TEST(AnnouncedWrite, ReachesEveryMembersRegionFromEveryRoot) {
  const Fabric fabric = per_request_fabric();
  Team team(fabric, kHosts);
  announce_and_write(team, 16);
  EXPECT_EQ(fabric.groups().at(0).at("write_mode"), "per-request");
}

TEST(AnnouncedWrite, ReachesMembersOverLinksThatLosePackets) {
  const Fabric fabric = per_request_fabric("[link]\nloss = 0.01\n");
  Team team(fabric, kHosts);
  announce_and_write(team, 12);
  EXPECT_GT(fabric.lost(), 0u) << "nothing was tested";
}

// The writer leads the group, and has the member's name in its error.
void expect_refusal(const Fabric& fabric, Team& team, const json& what,
                    const std::vector<std::vector<json>>& written) {
  expect_failed_write(team, what);
  const json query = team[0].send_request(command("query"));
  EXPECT_THAT(query.value("reason", ""), HasSubstr("refused a WRITE: 10.0.0.3"));
  expect_regions(team, written);
  std::uint64_t refused = 0;
  const json status = fabric.status();
  for (const json& one : status.at("switches")) {
    refused += one.at("counters").value("drop_write_refused", std::uint64_t{0});
  }
  EXPECT_GE(refused, 1u);
}

TEST(MulticastWrite, BeyondOneMembersRegionIsWrittenNowhereAndTheMemberIsNamed) {
  const Fabric fabric = Fabric::of(kHosts);
  Team team(fabric, kHosts);
  form(team, kSize, kSize - 1);  // its memory is longer than its region
  const json good = write(1, 0, 20'000);
  write_from(team, 0, good, false);
  expect_refusal(fabric, team, write(2, kSize - 20'000, 20'000), {{}, {good}, {good}, {good}});
}

// Only the member's NIC can find that out: switches trust the writer's list. The sender's own
// completion names no member, the leader's reason is the group's. The memory continues behind the
// registered part, up to the guard page.
TEST(AnnouncedWrite, BeyondTheRegisteredMemoryIsWrittenNowhereForAnyTarget) {
  constexpr std::size_t kRegistered = 32 * 1024;
  const Fabric fabric = per_request_fabric();
  Team team(fabric, kHosts);
  team.form(announced_lane());
  json targets = open_memory(team, kRegistered);
  const json good = write_to(targets, 0, 1, 0, 20'000);
  write_from(team, 0, good, false);
  targets[2][3] = targets[1][3];  // as long as the others'
  expect_failed_write(team, write_to(targets, 0, 2, kRegistered, 20'000));
  // All pages between the guards, to the last byte; the others may have it.
  json holds = command("holds");
  holds["writes"] = json::array({good});
  const json reply = team[2].send_request(holds);
  EXPECT_TRUE(reply.value("match", false)) << reply;
}

TEST(MulticastWrite, GoesToARegionThatWasPublishedInOperation) {
  const Fabric fabric = Fabric::of(kHosts);
  Team team(fabric, kHosts);
  team.form(kBulk);
  team.request_all(publish(kSize));
  team.expect_all(command("await_regions"), MCAST_OK);
  const json what = write(3, 17, 9000);
  write_from(team, 1, what, true);
  expect_regions(team, {{what}, {}, {what}, {what}});
}

void run_example(const char* program, const Fabric& fabric, int hosts) {
  const auto directory = std::filesystem::path(fabric.socket()).parent_path();
  std::vector<Process> ranks;
  for (int i = 0; i < hosts; ++i) {
    ranks.emplace_back(
        std::vector<std::string>{program, std::to_string(i), std::to_string(hosts), directory}, 1,
        on_host(fabric.socket(), i));
  }
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(60s), 0);
}

TEST(EagerMessages, AreWhatTheExampleShows) {
  run_example(CEPHEUS_EXAMPLES "group", Fabric::of(3), 3);
}

TEST(Reductions, AreWhatTheExampleShows) {
  run_example(CEPHEUS_EXAMPLES "reduce", Fabric::of(4), 4);
}

TEST(MulticastWrite, IsWhatTheExampleShows) {
  run_example(CEPHEUS_EXAMPLES "write", Fabric::of(3), 3);
}

TEST(AnnouncedWrite, IsWhatTheExampleShows) {
  run_example(CEPHEUS_EXAMPLES "write_to", per_request_fabric(), 4);
}

}  // namespace
}  // namespace cepheus::mcast::e2e
