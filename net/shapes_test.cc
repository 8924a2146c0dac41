#include "net/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace cepheus::net {
namespace {

using testing::HasSubstr;

// Equal-cost ports towards a host, from a switch called so.
std::size_t ways(const Topology::Plan& plan, const std::string& from, Ipv4 to) {
  for (const SwitchConfig& config : plan.configs) {
    if (config.name != from) continue;
    for (const Route& route : config.routes) {
      if (route.leaf == config.leaf_of_host->at(to)) return route.ports.size();
    }
  }
  return 0;
}

TEST(Shapes, LeafSpineJoinsEveryLeafToEverySpine) {
  const Topology t = leaf_spine(4, 3, 2);
  EXPECT_EQ(t.hosts.size(), 8u);
  EXPECT_EQ(t.switches.size(), 7u);
  EXPECT_EQ(t.trunks.size(), 12u);
  const auto plan = t.plan();
  ASSERT_TRUE(plan) << plan.error().text;
  EXPECT_EQ(ways(*plan, "leaf0", t.hosts[2].address), 3u);
  EXPECT_EQ(ways(*plan, "spine2", t.hosts[2].address), 1u);
}

TEST(Shapes, FatTreeHasTheNumbersOfItsPaper) {
  for (const std::size_t k : {2, 4, 6, 8}) {
    const Topology t = fat_tree(k);
    EXPECT_EQ(t.hosts.size(), k * k * k / 4);
    EXPECT_EQ(t.switches.size(), k * k + k * k / 4);
    EXPECT_EQ(t.trunks.size(), k * k * k / 2);
    const auto plan = t.plan();
    ASSERT_TRUE(plan) << plan.error().text;
    for (const SwitchConfig& config : plan->configs) EXPECT_EQ(config.ports.size(), k);
    EXPECT_EQ(ways(*plan, "edge0", t.hosts.back().address), k / 2);
    EXPECT_EQ(ways(*plan, "agg0", t.hosts.back().address), k / 2);
    EXPECT_EQ(ways(*plan, "core0", t.hosts.back().address), 1u);
  }
  EXPECT_EQ(fat_tree(4, {}, 2).hosts.size(), 8u);
}

TEST(Shapes, AreReadFromText) {
  EXPECT_EQ(from_shape("star:8")->hosts.size(), 8u);
  EXPECT_EQ(from_shape("leaf-spine:4x2x3")->hosts.size(), 12u);
  EXPECT_EQ(from_shape("fat-tree:4")->hosts.size(), 16u);
}

TEST(Shapes, ThatAreNoneAreAnsweredWithWhatToWrite) {
  const std::map<std::string, std::string> answers{
      {"", "there are star:HOSTS, leaf-spine:LEAVESxSPINESxHOSTS and fat-tree:PORTS"},
      {"ring:4", "there are star:HOSTS"},
      {"star", "write star:HOSTS"},
      {"star:0", "write star:HOSTS"},
      {"star:8x2", "write star:HOSTS"},
      {"leaf-spine:4x2", "write leaf-spine:LEAVESxSPINESxHOSTS"},
      {"leaf-spine:4x2x", "write leaf-spine:LEAVESxSPINESxHOSTS"},
      {"leaf-spine:400x2x400", "at most 65536 hosts"},
      {"fat-tree:5", "an even number of ports"},
      {"fat-tree:66", "from 2 to 64"},
      {"fat-tree:4 ", "an even number of ports"},
      {"fat-tree:99999999999999999999", "an even number of ports"}};
  for (const auto& [text, answer] : answers) {
    const auto t = from_shape(text);
    ASSERT_FALSE(t) << text;
    EXPECT_THAT(t.error().text, HasSubstr("fabric '" + text + "': ")) << text;
    EXPECT_THAT(t.error().text, HasSubstr(answer)) << text;
  }
}

}  // namespace
}  // namespace cepheus::net
