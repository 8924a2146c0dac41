// The root of every tree of up to 7 switches, with all sets of switches that have hosts, and all
// leaders among them.
#include "switch-emulator/engine/reduction/tree_sides.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <optional>

#include "switch-emulator/engine/reduction/test_trees.h"

namespace cepheus::fabric {
namespace {

// Paths of a switch: its trunks in the order of Tree::next, then its host.
using Sides = std::array<TreeSides, TestTree::kMost>;

PathNo path_to(const TestTree& tree, std::size_t from, std::size_t to) {
  const auto at = std::ranges::find(tree.next[from], to);
  return static_cast<PathNo>(at - tree.next[from].begin());
}

// CONFIRMs towards the leader.
void confirm(const TestTree& tree, Sides& sides, std::size_t at, std::size_t from) {
  for (const std::size_t to : tree.next[at]) {
    if (to == from) continue;
    confirm(tree, sides, to, at);
    sides[at].set(path_to(tree, at, to), sides[to].without(path_to(tree, to, at)));
  }
}

// ACTIVATE from the leader.
void activate(const TestTree& tree, Sides& sides, std::size_t at, std::size_t from) {
  for (const std::size_t to : tree.next[at]) {
    if (to == from) continue;
    sides[to].set(path_to(tree, to, at), sides[at].without(path_to(tree, at, to)));
    activate(tree, sides, to, at);
  }
}

Sides registered(const TestTree& tree, std::size_t leader) {
  Sides sides;
  for (std::size_t s = 0; s < tree.size; ++s) {
    for (std::size_t i = 0; i < tree.next[s].size(); ++i) sides[s].add_path();
    if (!tree.has_host(s)) continue;
    sides[s].add_path();
    sides[s].set_host(static_cast<PathNo>(tree.next[s].size()),
                      Ipv4(static_cast<std::uint32_t>(100 + s)));
  }
  confirm(tree, sides, leader, TestTree::kMost);
  activate(tree, sides, leader, TestTree::kMost);
  return sides;
}

// By switch: the path from there to each other switch, and to its own host.
using Ways = std::array<std::array<PathNo, TestTree::kMost>, TestTree::kMost>;

void find_ways(const TestTree& tree, Ways& ways, std::size_t s, std::size_t at, std::size_t from,
               PathNo first) {
  ways[s][at] = first;
  for (const std::size_t to : tree.next[at]) {
    if (to != from) find_ways(tree, ways, s, to, at, at == s ? path_to(tree, s, to) : first);
  }
}

Ways ways_of(const TestTree& tree) {
  Ways ways{};
  for (std::size_t s = 0; s < tree.size; ++s) {
    find_ways(tree, ways, s, s, TestTree::kMost, static_cast<PathNo>(tree.next[s].size()));
  }
  return ways;
}

using Links = std::array<int, TestTree::kMost>;  // of each switch, to its farthest host

void expect_all_know_all(const TestTree& tree, const Sides& sides, const Links& links) {
  const auto members = static_cast<std::uint32_t>(std::popcount(tree.hosts));
  const Ipv4 lowest(static_cast<std::uint32_t>(100 + std::countr_zero(tree.hosts)));
  for (std::size_t s = 0; s < tree.size; ++s) {
    const wire::MrpTree all = sides[s].without(kNoPath);
    ASSERT_TRUE(all.members == members && all.lowest == lowest && all.height == links[s]);
  }
}

// One switch is the root, no other is nearer to its farthest host, and all others' ways lead there.
void expect_root(const TestTree& tree, const Sides& sides, const Links& links, const Ways& ways,
                 std::size_t leader) {
  std::array<PathNo, TestTree::kMost> up{};
  std::size_t root = TestTree::kMost;
  for (std::size_t s = 0; s < tree.size; ++s) {
    up[s] = sides[s].to_root(ways[s][leader]);
    if (up[s] != kNoPath) continue;
    ASSERT_EQ(root, TestTree::kMost) << "two roots";
    root = s;
  }
  ASSERT_LT(root, tree.size) << "no root";
  ASSERT_EQ(links[root], *std::min_element(links.begin(), links.begin() + tree.size));
  for (std::size_t s = 0; s < tree.size; ++s) {
    std::size_t at = s;
    for (std::size_t steps = 0; at != root && steps < tree.size; ++steps) {
      at = tree.next[at].at(up[at]);
    }
    ASSERT_EQ(at, root) << "a way in circles";
  }
}

// Of all members and leaders in the tree; their number.
std::size_t expect_roots(TestTree& tree) {
  std::size_t cases = 0;
  const Ways ways = ways_of(tree);
  for (tree.hosts = 1; tree.hosts < 1u << tree.size; ++tree.hosts) {
    if (!tree.is_of_a_group() || testing::Test::HasFatalFailure()) continue;
    Links links{};
    for (std::size_t s = 0; s < tree.size; ++s) links[s] = tree.links(s);
    std::optional<Sides> sides;
    for (std::size_t leader = 0; leader < tree.size; ++leader) {
      if (!tree.has_host(leader)) continue;
      ++cases;
      // Small trees show that the sides do not depend on the leader.
      if (!sides || tree.size < 6) {
        sides = registered(tree, leader);
        expect_all_know_all(tree, *sides, links);
      }
      expect_root(tree, *sides, links, ways, leader);
    }
  }
  return cases;
}

TEST(TreeSides, FindOneRootInTheMiddleOfEveryTree) {
  std::size_t cases = 0;
  const std::size_t trees =
      for_each_tree(TestTree::kMost, [&](TestTree tree) { cases += expect_roots(tree); });
  EXPECT_EQ(trees, 18'249u);
  EXPECT_GT(cases, 1'000'000u);
}

TEST(TreeSides, KeepANewerRecordThanOneThatWasOvertaken) {
  TreeSides sides;
  sides.add_path();
  sides.set(0, {2, 0, Ipv4(7), Ipv4(20), 5});
  sides.set(0, {1, 0, Ipv4(9), Ipv4(20), 3});
  EXPECT_EQ(sides.behind(0), (wire::MrpTree{3, 0, Ipv4(7), Ipv4(20), 5}));
  sides.set(0, {3, 2, Ipv4(7), Ipv4(20), 5});
  EXPECT_EQ(sides.behind(0).height, 4) << "as new";
  sides.set(0, {3, 0, Ipv4(7), Ipv4(20), 5});
  EXPECT_EQ(sides.behind(0).flags, 2) << "the same members";
  sides.set(0, {255, 0, Ipv4(7), Ipv4(20), 6});
  EXPECT_EQ(sides.behind(0).flags, 0) << "more members";
  EXPECT_EQ(sides.behind(0).height, 255);
}

TEST(TreeSides, KnowNothingOfPathsWithoutARecord) {
  TreeSides sides;
  for (int i = 0; i < 3; ++i) sides.add_path();
  EXPECT_EQ(sides.without(0).members, 0u);
  sides.set_host(1, Ipv4(3));
  sides.set(2, {1, 0, Ipv4(2), Ipv4(9), 4});
  EXPECT_TRUE(sides.is_incomplete());
  EXPECT_EQ(sides.without(0), (wire::MrpTree{2, 0, Ipv4(2), Ipv4(9), 5}));
  EXPECT_EQ(sides.without(2).members, 1u);
  sides.remove_path(0);
  EXPECT_EQ(sides.behind(0).members, 4u) << "the last one has the number";
}

struct Side {
  std::uint32_t lowest, highest, members;
  std::uint8_t flags = wire::MrpTree::kSideIsFlat;
};

// Of a root with these children.
bool is_flat(std::initializer_list<Side> children) {
  TreeSides sides;
  for (const Side& side : children) {
    sides.add_path();
    sides.set(PathNo(&side - children.begin()),
              {1, side.flags, Ipv4(side.lowest), Ipv4(side.highest), side.members});
  }
  return sides.group_is_flat(kNoPath);
}

TEST(TreeSides, AreFlatIfAllButTheLastHaveTheSamePowerOfTwoOfMembers) {
  EXPECT_TRUE(is_flat({{1, 4, 4}, {5, 8, 4}, {9, 12, 4}}));
  EXPECT_TRUE(is_flat({{9, 12, 4}, {1, 4, 4}, {13, 13, 1}, {5, 8, 4}})) << "in any order of paths";
  EXPECT_TRUE(is_flat({{1, 2, 2}, {3, 3, 1}}));
  EXPECT_FALSE(is_flat({{1, 3, 3}, {4, 6, 3}}));
  EXPECT_FALSE(is_flat({{1, 4, 4}, {5, 6, 2}, {7, 10, 4}}));
  EXPECT_FALSE(is_flat({{1, 2, 2}, {3, 6, 4}}));
}

TEST(TreeSides, AreNotFlatIfAddressesOverlapOrASideIsNotFlat) {
  EXPECT_FALSE(is_flat({{1, 5, 4}, {4, 8, 4}}));
  EXPECT_FALSE(is_flat({{1, 8, 4}, {2, 5, 4}}));
  EXPECT_FALSE(is_flat({{1, 4, 4}, {5, 8, 4, 0}}));
}

TEST(TreeSides, LearnFromTheRootAloneThatTheGroupIsFlat) {
  TreeSides sides;
  for (int i = 0; i < 2; ++i) sides.add_path();
  sides.set_host(0, Ipv4(1));
  EXPECT_FALSE(sides.group_is_flat(0)) << "a side is not known";
  sides.set(1, {2, wire::MrpTree::kSideIsFlat, Ipv4(2), Ipv4(2), 1});
  ASSERT_EQ(sides.to_root(0), 1);
  EXPECT_FALSE(sides.group_is_flat(0)) << "the root's tree may differ from this switch's";
  sides.set(1, {2, wire::MrpTree::kGroupIsFlat, Ipv4(2), Ipv4(2), 1});
  EXPECT_TRUE(sides.group_is_flat(0));
}

}  // namespace
}  // namespace cepheus::fabric
