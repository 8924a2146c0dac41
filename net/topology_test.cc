#include "net/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "wire/mrp.h"

namespace cepheus::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology with_switches(std::initializer_list<const char*> names) {
  Topology t;
  for (const char* name : names) t.switches.push_back({name, {}});
  return t;
}

void add_host(Topology& t, const std::string& name, Ipv4 address, std::size_t at) {
  HostSpec host;
  host.name = name;
  host.address = address;
  host.switch_index = at;
  t.hosts.push_back(std::move(host));
}

void add_trunk(Topology& t, std::size_t a, std::size_t b) {
  TrunkSpec trunk;
  trunk.a = a;
  trunk.b = b;
  t.trunks.push_back(trunk);
}

// Two leaves, two spines: two equal-cost paths between the leaves.
Topology leaves_and_spines() {
  Topology t = with_switches({"leaf0", "leaf1", "spine0", "spine1"});
  add_host(t, "h0", Ipv4(10, 0, 0, 1), 0);
  add_host(t, "h1", Ipv4(10, 0, 0, 2), 1);
  for (const std::size_t leaf : {0, 1}) {
    for (const std::size_t spine : {2, 3}) add_trunk(t, leaf, spine);
  }
  return t;
}

std::vector<PortId> route(const SwitchConfig& config, Ipv4 host) {
  const auto leaf = config.leaf_of_host->find(host);
  if (leaf == config.leaf_of_host->end()) return {};
  for (const Route& r : config.routes) {
    if (r.leaf == leaf->second) return r.ports;
  }
  return {};
}

TEST(Topology, StarHasItsHostsOnOneSwitch) {
  LinkConfig link;
  link.rate.bits_per_second = 1'000'000'000;
  const Topology t = Topology::star(3, link);
  ASSERT_EQ(t.switches.size(), 1u);
  ASSERT_EQ(t.hosts.size(), 3u);
  EXPECT_EQ(t.hosts[2].name, "h2");
  EXPECT_EQ(t.hosts[2].address, Ipv4(10, 0, 0, 3));
  EXPECT_EQ(t.hosts[2].down.rate.bits_per_second, 1'000'000'000u);
}

TEST(Topology, GivesEachDirectionOfEachLinkItsOwnSeed) {
  Topology t = leaves_and_spines();
  t.assign_link_seeds();
  std::set<std::uint64_t> seeds;
  for (const HostSpec& host : t.hosts) seeds.insert({host.up.seed, host.down.seed});
  for (const TrunkSpec& trunk : t.trunks) seeds.insert({trunk.ab.seed, trunk.ba.seed});
  EXPECT_EQ(seeds.size(), 2 * (t.hosts.size() + t.trunks.size()));
}

TEST(Topology, DrawsOtherLinkSeedsFromAnotherSeed) {
  Topology a = Topology::star(1), b = Topology::star(1);
  b.seed = 2;
  b.assign_link_seeds();
  EXPECT_NE(a.hosts[0].up.seed, b.hosts[0].up.seed);
}

TEST(Topology, KnowsItsSlowestLinkInEitherDirection) {
  Topology t = with_switches({"a", "b"});
  add_host(t, "h0", Ipv4(10, 0, 0, 1), 0);
  add_trunk(t, 0, 1);
  EXPECT_TRUE(t.slowest_rate().is_unlimited());
  t.hosts[0].down.rate = {5'000};
  EXPECT_EQ(t.slowest_rate().bits_per_second, 5'000u);
  t.trunks[0].ba.rate = {3'000};
  EXPECT_EQ(t.slowest_rate().bits_per_second, 3'000u);
  t.hosts[0].up.rate = {4'000};
  EXPECT_EQ(t.slowest_rate().bits_per_second, 3'000u);
}

TEST(TopologyPlan, NamesPortsAndMacsOfAStar) {
  Topology t = Topology::star(2);
  t.mtu = 1024;
  t.mrp_port = 2000;
  const auto plan = t.plan();
  ASSERT_TRUE(plan) << plan.error().text;
  ASSERT_EQ(plan->configs.size(), 1u);
  const SwitchConfig& s0 = plan->configs[0];
  EXPECT_EQ(s0.address, Ipv4(10, 255, 0, 1));
  EXPECT_EQ(s0.mac, wire::mac_for(s0.address));
  EXPECT_EQ(s0.mrp_port, 2000);
  ASSERT_EQ(s0.ports.size(), 2u);
  EXPECT_EQ(s0.ports[1].name, "h1");
  EXPECT_EQ(s0.ports[1].host, Ipv4(10, 0, 0, 2));
  EXPECT_EQ(s0.ports[1].peer_mac, wire::mac_for(Ipv4(10, 0, 0, 2)));
  EXPECT_EQ(s0.ports[1].mtu, largest_frame(1024));
  EXPECT_EQ(largest_frame(256), kEthernetFrame);
  EXPECT_EQ(largest_frame(4096), 4096 + kFrameOverhead);
  EXPECT_EQ(plan->ends[0][1].host, 1u);
  EXPECT_TRUE(s0.routes.empty());
}

TEST(TopologyPlan, KeepsSwitchAddressesAwayFromHosts) {
  Topology t = Topology::star(1);
  t.hosts[0].address = Ipv4(10, 255, 0, 1);
  EXPECT_EQ(t.plan()->configs[0].address, Ipv4(10, 255, 0, 2));
}

TEST(TopologyPlan, UsesEveryShortestPath) {
  const auto plan = leaves_and_spines().plan();
  ASSERT_TRUE(plan) << plan.error().text;
  // leaf0: port 0 is h0, 1 and 2 are the spines.
  EXPECT_THAT(route(plan->configs[0], Ipv4(10, 0, 0, 2)), ElementsAre(PortId(1), PortId(2)));
  EXPECT_TRUE(route(plan->configs[0], Ipv4(10, 0, 0, 1)).empty()) << "its own host needs no route";
  EXPECT_THAT(route(plan->configs[2], Ipv4(10, 0, 0, 1)), ElementsAre(PortId(0)));
}

TEST(TopologyPlan, RoutesAlongAChainAndTakesAShortcut) {
  Topology t = with_switches({"a", "b", "c", "d"});
  add_host(t, "h0", Ipv4(10, 0, 0, 1), 3);
  add_trunk(t, 0, 1);
  add_trunk(t, 1, 2);
  add_trunk(t, 2, 3);
  EXPECT_THAT(route(t.plan()->configs[0], Ipv4(10, 0, 0, 1)), ElementsAre(PortId(0)));
  add_trunk(t, 0, 3);
  EXPECT_THAT(route(t.plan()->configs[0], Ipv4(10, 0, 0, 1)), ElementsAre(PortId(1)));
}

TEST(TopologyPlan, LetsTheTwoEndsOfATrunkPointAtEachOther) {
  const Topology t = leaves_and_spines();
  const auto plan = t.plan();
  ASSERT_TRUE(plan);
  std::size_t trunk_ports = 0;
  for (std::size_t at = 0; at < plan->ends.size(); ++at) {
    for (std::size_t p = 0; p < plan->ends[at].size(); ++p) {
      const PortEnd& end = plan->ends[at][p];
      if (end.kind != PortKind::kSwitch) continue;
      ++trunk_ports;
      const PortEnd& back = plan->ends[end.peer_switch][end.peer_port.value()];
      EXPECT_EQ(back.peer_switch, at);
      EXPECT_EQ(back.peer_port.value(), p);
      EXPECT_EQ(back.trunk, end.trunk);
      EXPECT_EQ(plan->configs[at].ports[p].peer_mac, plan->configs[end.peer_switch].mac);
    }
  }
  EXPECT_EQ(trunk_ports, 2 * t.trunks.size());
}

TEST(TopologyPlan, TellsParallelTrunksApart) {
  Topology t = with_switches({"a", "b"});
  add_host(t, "h0", Ipv4(10, 0, 0, 1), 0);
  add_trunk(t, 0, 1);
  add_trunk(t, 1, 0);
  const auto plan = t.plan();
  ASSERT_TRUE(plan) << plan.error().text;
  EXPECT_EQ(plan->configs[0].ports[1].name, "b");
  EXPECT_EQ(plan->configs[0].ports[2].name, "b#2");
  EXPECT_THAT(route(plan->configs[1], Ipv4(10, 0, 0, 1)), ElementsAre(PortId(0), PortId(1)));
}

TEST(TopologyPlan, RefusesWhatNoFabricCanBeBuiltFrom) {
  Topology t = Topology::star(2);
  t.hosts[1].address = t.hosts[0].address;
  EXPECT_THAT(t.plan().error().text,
              HasSubstr("address 10.0.0.1 belongs to 'h0' already; each host needs its own"));
  t = Topology::star(1);
  t.hosts[0].switch_index = 7;
  EXPECT_THAT(t.plan().error().text, HasSubstr("switch does not exist"));
  t = Topology::star(1);
  t.hosts[0].up.queue_bytes = 100;
  EXPECT_THAT(t.plan().error().text, HasSubstr("holds no frame; write queue = \"4224B\" or more"));
}

}  // namespace
}  // namespace cepheus::net
