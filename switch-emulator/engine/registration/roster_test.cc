#include "switch-emulator/engine/registration/roster.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace cepheus::fabric {
namespace {

using wire::MrpType;

constexpr std::uint16_t kTrunk = 5;  // the first port that is a trunk

Roster::Member at(std::uint32_t host) {
  const auto port = static_cast<std::uint16_t>(host % 7);
  return {Ipv4(host), Qpn(host), PortId(port), 0, port >= kTrunk};
}

// A roster, and the same members in a list with linear search.
struct RosterAndList {
  Roster roster;
  std::vector<Roster::Member> list;

  std::vector<Roster::Member>::iterator find(std::uint32_t host) {
    return std::find_if(list.begin(), list.end(),
                        [host](const Roster::Member& m) { return m.host == Ipv4(host); });
  }
  void add(const std::vector<std::uint32_t>& hosts) {
    std::vector<Roster::Member> members;
    for (const auto each : hosts) {
      members.push_back(at(each));
      if (find(each) == list.end()) list.push_back(at(each));
    }
    roster.add(members);
  }
  void remove(std::uint32_t host) {
    roster.remove(Ipv4(host));
    std::erase_if(list, [host](const auto& m) { return m.host == Ipv4(host) && !m.by_trunk; });
  }
  void expect(std::uint32_t host) {
    if (const auto* m = roster.find({Ipv4(host), Qpn(host)})) roster.expect(*m);
    if (find(host) != list.end()) find(host)->owed = true;
  }
  void expect_all() {
    roster.expect_all();
    for (auto& m : list) m.owed = true;
  }
  void confirm(std::uint32_t host) {
    RC_ASSERT(roster.confirm({Ipv4(host), Qpn(host)}, at(host).port, false) ==
              (find(host) != list.end()));
    RC_ASSERT(!roster.confirm({Ipv4(host), Qpn(host + 1)}, at(host).port, false));
    RC_ASSERT(!roster.confirm({Ipv4(host), Qpn(host)}, PortId(9), false));
    if (find(host) != list.end()) find(host)->confirmed = true;
  }
  void take_ready() {
    const std::size_t ready = roster.ready(), most = *rc::gen::inRange<std::size_t>(0, 40);
    roster.take_ready(most, [&](const Roster::Member& m) {
      const auto taken = find(m.host.value());
      RC_ASSERT(taken->owed && taken->confirmed);
      taken->owed = false;
    });
    RC_ASSERT(roster.ready() == ready - std::min(most, ready));
  }
  std::size_t count_owed(bool confirmed) const {
    return std::size_t(std::count_if(list.begin(), list.end(), [confirmed](const auto& m) {
      return m.owed && m.confirmed == confirmed;
    }));
  }
  void compare() const {
    roster.check_consistent();
    RC_ASSERT(roster.size() == list.size());
    RC_ASSERT(roster.ready() == count_owed(true));
    RC_ASSERT(roster.awaited() == count_owed(false));
  }
};

// In the step that keeps all names.
TEST(Roster, CountsAsAPlainListDoesDuringRegister) {
  EXPECT_TRUE(rc::check([] {
    RosterAndList both;
    const auto steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      const auto host = *rc::gen::inRange<std::uint32_t>(1, 30);
      switch (*rc::gen::inRange(0, 6)) {
        case 0:
          both.add(*rc::gen::container<std::vector<std::uint32_t>>(
              rc::gen::inRange<std::uint32_t>(1, 30)));
          break;
        case 1:
          both.remove(host);
          break;
        case 2:
          both.expect(host);
          break;
        case 3:
          both.confirm(host);
          break;
        case 4:
          both.take_ready();
          break;
        case 5:
          both.expect_all();
          break;
      }
      both.compare();
    }
  }));
}

using Hosts = std::vector<std::uint32_t>;

// Hosts 1 and 2 are on own ports; 5, 12 and 19 behind one trunk, 6 behind another one.
Roster registered() {
  Roster roster;
  std::vector<Roster::Member> members;
  for (const std::uint32_t host : {19, 6, 12, 1, 5, 2}) members.push_back(at(host));
  roster.add(members);
  roster.add(std::span(members).first(3));  // a repeat
  return roster;
}

bool confirm(Roster& roster, std::uint32_t host) {
  const bool is_known = roster.confirm(at(host).name(), at(host).port, false);
  roster.check_consistent();
  return is_known;
}

Hosts take(Roster& roster, std::size_t most = 100) {
  Hosts hosts;
  roster.take_ready(most, [&](const Roster::Member& m) { hosts.push_back(m.host.value()); });
  roster.check_consistent();
  return hosts;
}

TEST(Roster, NamesMembersBehindTrunksDuringRegisterAndCountsThemAfterIt) {
  Roster roster = registered();
  EXPECT_NE(roster.find(Ipv4(12)), nullptr);
  EXPECT_EQ(roster.size(), 6u);
  const std::size_t before = roster.allocated_bytes();
  roster.begin(MrpType::kConnect);
  EXPECT_NE(roster.find(Ipv4(12)), nullptr) << "its repeats name members, too";
  roster.begin(MrpType::kActivate);
  EXPECT_EQ(roster.find(Ipv4(12)), nullptr);
  EXPECT_NE(roster.find(Ipv4(2)), nullptr);
  EXPECT_EQ(roster.size(), 6u);
  EXPECT_EQ(roster.count_behind(PortId(5)), 3u);
  EXPECT_EQ(roster.count_behind(PortId(6)), 1u);
  EXPECT_EQ(roster.count_behind(at(1).port), 0u) << "an own port";
  EXPECT_LT(roster.allocated_bytes(), before);
  roster.check_consistent();
}

TEST(Roster, KeepsANameFromItsConfirmUntilTheSwitchs) {
  Roster roster = registered();
  roster.begin(MrpType::kActivate);
  const std::size_t idle = roster.allocated_bytes();
  roster.expect_all();
  EXPECT_EQ(roster.awaited(), 6u);
  for (const std::uint32_t host : {12, 1, 12, 5}) EXPECT_TRUE(confirm(roster, host));
  EXPECT_GT(roster.allocated_bytes(), idle);
  EXPECT_EQ(take(roster), Hosts({1, 12, 5}));
  EXPECT_EQ(roster.allocated_bytes(), idle);
  EXPECT_EQ(take(roster), Hosts());
  for (const std::uint32_t host : {19, 6, 2}) EXPECT_TRUE(confirm(roster, host));
  EXPECT_EQ(roster.awaited(), 0u);
  EXPECT_FALSE(confirm(roster, 3)) << "no member, and no trunk leads to it";
}

// The leader did not get host 12's confirmation, which the trunk's switch repeats.
TEST(Roster, AwaitsMembersWithoutNamesAfterARepeatedRequest) {
  Roster roster = registered();
  roster.begin(MrpType::kActivate);
  roster.expect_all();
  for (const std::uint32_t host : {1, 2, 5, 6, 12, 19}) confirm(roster, host);
  EXPECT_EQ(take(roster).size(), 6u);
  roster.expect_nameless(1);
  EXPECT_EQ(roster.awaited(), 1u);
  EXPECT_TRUE(confirm(roster, 12));
  EXPECT_EQ(roster.awaited(), 0u);
  EXPECT_EQ(take(roster), Hosts({12}));
  roster.begin(MrpType::kUnregister);
  EXPECT_EQ(roster.awaited(), 0u);
  roster.expect_all();
  EXPECT_EQ(roster.awaited(), 6u);
}

TEST(Roster, KeepsTheReadyOnesThatAreNotTaken) {
  Roster roster = registered();
  roster.begin(MrpType::kActivate);
  roster.expect_all();
  const std::size_t idle = roster.allocated_bytes();
  for (const std::uint32_t host : {12, 1, 5, 2}) confirm(roster, host);
  EXPECT_EQ(take(roster, 1), Hosts({1}));
  EXPECT_EQ(take(roster, 2), Hosts({2, 12}));
  EXPECT_EQ(roster.ready(), 1u);
  EXPECT_EQ(take(roster, 2), Hosts({5}));
  EXPECT_EQ(roster.allocated_bytes(), idle);
}

TEST(Roster, KnowsWhichTrunksHaveConfirmed) {
  Roster roster = registered();
  roster.begin(MrpType::kUnregister);
  EXPECT_TRUE(confirm(roster, 12));
  take(roster);
  EXPECT_TRUE(roster.has_confirmed(PortId(5)));
  EXPECT_FALSE(roster.has_confirmed(PortId(6)));
  EXPECT_FALSE(roster.has_confirmed(PortId(7))) << "no trunk of the group";
}

TEST(Roster, SubtractsNoMemberFromATrunksCount) {
  Roster roster = registered();
  roster.begin(MrpType::kActivate);
  EXPECT_EQ(roster.one_behind(PortId(5))->host, Ipv4(5)) << "the first by address";
  for (int i = 0; i < 3; ++i) {
    for (const std::uint32_t host : {5, 2}) roster.remove(Ipv4(host));
    roster.check_consistent();
  }
  EXPECT_EQ(roster.count_behind(PortId(5)), 3u);
  EXPECT_EQ(roster.size(), 5u) << "host 2 was on an own port";
  EXPECT_FALSE(roster.one_behind(PortId(5)));
  EXPECT_TRUE(roster.one_behind(PortId(6)));
}

// A late copy of a message has an older path.
TEST(Roster, KeepsTheLeastPathMtuBehindATrunk) {
  Roster roster = registered();
  roster.set_path(PortId(kTrunk), {512, 9});
  roster.set_path(PortId(kTrunk), {4096, 7});
  EXPECT_EQ(roster.path(), (wire::MrpPath{512, 7}));
}

}  // namespace
}  // namespace cepheus::fabric
