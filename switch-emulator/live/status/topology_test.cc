// The shape of a fabric, as a graph, as text and as a drawing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/test_status.h"
#include "switch-emulator/live/status/topology_graph.h"

namespace cepheus::live {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t floor_of(const FabricStatus& status, const TopologyGraph& graph, const char* name) {
  for (std::size_t s = 0; s < status.switches.size(); ++s) {
    if (status.switches[s].name == name) return graph.floors[s];
  }
  return 0;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(TopologyGraph, PutsLeavesOverHostsAndSpinesOverLeaves) {
  const FabricStatus status = status_of(net::leaf_spine(4, 2, 4));
  const TopologyGraph graph(status);
  EXPECT_EQ(floor_of(status, graph, "leaf3"), 1u);
  EXPECT_EQ(floor_of(status, graph, "spine0"), 2u);
  EXPECT_EQ(graph.cables.size(), 4u * 2 + 16) << "each trunk once";
}

TEST(TopologyGraph, GivesAFatTreeThreeFloors) {
  const FabricStatus status = status_of(net::fat_tree(4));
  const TopologyGraph graph(status);
  EXPECT_EQ(graph.top(), 3u);
  EXPECT_EQ(std::count(graph.floors.begin(), graph.floors.end(), 1u), 8);
  EXPECT_EQ(std::count(graph.floors.begin(), graph.floors.end(), 2u), 8);
  EXPECT_EQ(std::count(graph.floors.begin(), graph.floors.end(), 3u), 4);
}

TEST(TopologyGraph, DistinguishesTwoTrunksBetweenTheSameSwitches) {
  net::Topology topology = net::leaf_spine(2, 1, 1);
  topology.trunks.push_back(topology.trunks.front());
  FabricStatus status = status_of(topology);
  switch_called(status, "leaf0").ports.back().in_up = false;
  const TopologyGraph graph(status);
  EXPECT_EQ(graph.cables.size(), 3u + 2);
  EXPECT_EQ(std::count_if(graph.cables.begin(), graph.cables.end(),
                          [](const auto& c) { return c.state == TopologyGraph::State::kCut; }),
            1);
}

TEST(TopologyGraph, ShowsATrunkInItsWorseEndsState) {
  FabricStatus status = status_of(net::leaf_spine(2, 1, 1));
  port_to(status, "spine0", "leaf1").dark = true;
  const TopologyGraph graph(status);
  std::string dark;
  for (const auto& c : graph.cables) {
    if (c.state == TopologyGraph::State::kDark) dark = status.switches[c.from].name + c.name;
  }
  EXPECT_EQ(dark, "leaf1spine0");
}

class TreeOverSpine : public testing::Test {
 protected:
  TreeOverSpine() {
    add_tree(status_, wire::McstId(198, 18, 0, 1),
             {{"leaf0", {"h0", "h1", "h2", "spine1"}},
              {"spine1", {"leaf0", "leaf1"}},
              {"leaf1", {"spine1", "h5"}}},
             "h1");
  }
  FabricStatus status_ = status_of(net::leaf_spine(2, 2, 4));
};

TEST_F(TreeOverSpine, IsReadFromWhatTheSwitchesKnow) {
  const TopologyGraph graph(status_);
  ASSERT_EQ(graph.trees.size(), 1u);
  EXPECT_EQ(status_.switches[graph.trees[0].root].name, "leaf0");
  EXPECT_EQ(graph.trees[0].cables.size(), 4u + 2);
}

TEST_F(TreeOverSpine, IsIndentedFromWhereItsDataEnters) {
  EXPECT_THAT(topology_text(status_, false), HasSubstr("198.18.0.1  4 members, from 10.0.0.1\n"
                                                       "  leaf0  h0..h2\n"
                                                       "    spine1\n"
                                                       "      leaf1  h5\n"));
}

TEST_F(TreeOverSpine, HasAColouredLineOverEachOfItsCables) {
  const std::string svg = topology_svg(status_);
  EXPECT_EQ(count(svg, "<title>group 198.18.0.1</title>"), 6u);
  EXPECT_EQ(count(svg, "<rect"), 4u);
  EXPECT_EQ(count(svg, "<circle"), 8u);
  EXPECT_THAT(svg, HasSubstr("group 198.18.0.1, from 10.0.0.1"));
}

TEST_F(TreeOverSpine, IsInJsonByItsCables) {
  const nlohmann::json written = topology_json(status_);
  EXPECT_EQ(written["groups"][0]["root"], "leaf0");
  EXPECT_EQ(written["groups"][0]["cables"].size(), 6u);
  EXPECT_EQ(written["switches"].size(), 4u);
}

TEST(TopologyText, MarksCutCablesAndNumbersFloors) {
  FabricStatus status = status_of(net::leaf_spine(2, 2, 4));
  port_to(status, "leaf0", "spine1").out_up = false;
  const std::string text = topology_text(status, false);
  EXPECT_THAT(text,
              testing::ContainsRegex("1 +leaf0 +spine0 spine1 +h0\\.\\.h3 +spine1 \\(cut\\)"));
  EXPECT_THAT(text, testing::ContainsRegex("2 +spine1 +leaf0 leaf1 +leaf0 \\(cut\\)"));
}

TEST(TopologyText, OfASingleSwitchIsALine) {
  EXPECT_THAT(topology_text(status_of(net::Topology::star(64)), false),
              testing::ContainsRegex("1 +s0 +h0\\.\\.h63"));
}

TEST(TopologySvg, ShowsHostileNamesAsText) {
  FabricStatus status = status_of(net::Topology::star(2));
  status.switches[0].name = "<script>\"&";
  status.switches[0].ports[0].name = "a\x1b[31mb";
  const std::string svg = topology_svg(status);
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&quot;&amp;"));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
}

TEST(TopologySvg, DrawsCutCablesDifferently) {
  FabricStatus status = status_of(net::leaf_spine(2, 1, 1));
  EXPECT_EQ(count(topology_svg(status), "<line class=\"cut\""), 0u);
  port_to(status, "leaf0", "spine0").in_up = false;
  EXPECT_EQ(count(topology_svg(status), "<line class=\"cut\""), 1u);
}

TEST(TopologySvg, IsThereForAFabricWithoutSwitches) {
  EXPECT_THAT(topology_svg(FabricStatus()), HasSubstr("0 switches, 0 hosts"));
  EXPECT_THAT(topology_text(FabricStatus(), false), HasSubstr("FLOOR"));
}

}  // namespace
}  // namespace cepheus::live
