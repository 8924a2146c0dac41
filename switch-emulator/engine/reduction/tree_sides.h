// The members behind each path of a reduction group's switch, and the path to the root.
//
//   CONFIRM     a child's side, towards the leader      CONNECT      all other sides, to a child
//                                                       ACTIVATE     the same
//
// The root is in the middle of the tree: no switch is nearer to its farthest member. If two switches
// are equally near, the one at the leader's side is the root. So all switches find the same root from
// the heights of their own sides (docs/protocol.md, "The root of a reduction").
//
// No result depends on its place: if heights were wrong, units would wait.
//
// A side is *flat* if pairs of its paths, in the order of their lowest addresses, are pairs of its
// members by address: all paths but the last have the same power of two of members, the last one at
// most as many, no two paths' addresses overlap, and each path's own side is flat.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "switch-emulator/engine/group/path.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

class TreeSides {
 public:
  using MrpTree = wire::MrpTree;

  void add_path() { sides_.emplace_back(); }
  // A path has left; the last one has its number.
  void remove_path(PathNo path) {
    sides_[path] = sides_.back();
    sides_.pop_back();
  }
  void set_host(PathNo path, Ipv4 host) {
    sides_[path] = {kHostHeight, MrpTree::kSideIsFlat, host, host, 1};
  }
  // A record has come by the path. Members only join, so one with fewer is older, and has been
  // overtaken. So has one of as many members without a flag that is known.
  void set(PathNo path, const MrpTree& at_far_end) {
    MrpTree& side = sides_[path];
    if (at_far_end.members < side.members) return;
    const std::uint8_t known = at_far_end.members == side.members ? side.flags : std::uint8_t{0};
    side = at_far_end;
    side.flags |= known;
    if (side.height < kMostHeight) ++side.height;
  }
  // What is known behind the path, heights from here; without members: nothing.
  const MrpTree& behind(PathNo path) const { return sides_[path]; }
  // The record for the node behind `path`: all other sides. Without members: none is known. kNoPath:
  // all sides.
  MrpTree without(PathNo path) const {
    MrpTree others;
    for (PathNo i = 0; i < sides_.size(); ++i) {
      if (i != path && sides_[i].members > 0) others.add(sides_[i]);
    }
    if (is_flat(path)) others.flags = MrpTree::kSideIsFlat;
    return others;
  }
  // All paths but `path`, in the order of their lowest addresses.
  std::vector<PathNo> in_order(PathNo path) const {
    std::vector<PathNo> paths;
    for (PathNo i = 0; i < sides_.size(); ++i) {
      if (i != path) paths.push_back(i);
    }
    std::ranges::sort(paths, {}, [this](PathNo i) { return sides_[i].lowest; });
    return paths;
  }
  // Some side's members are not known yet.
  bool is_incomplete() const {
    return std::ranges::any_of(sides_, [](const MrpTree& side) { return side.members == 0; });
  }
  // The root has found that the group is flat, and this is the root, or knows it from there.
  bool group_is_flat(PathNo leader) const {
    if (is_incomplete()) return false;
    const PathNo root = to_root(leader);
    return root == kNoPath ? is_flat(kNoPath) : sides_[root].has(MrpTree::kGroupIsFlat);
  }
  // kNoPath: the root is here. `leader`: the path towards the leader.
  PathNo to_root(PathNo leader) const {
    PathNo farthest = kNoPath;
    int first = 0, second = 0;  // the two largest heights
    for (PathNo i = 0; i < sides_.size(); ++i) {
      const int height = sides_[i].height;
      second = std::max(second, std::min(height, first));
      if (height <= first) continue;
      first = height;
      farthest = i;
    }
    const bool has_only_hosts = first <= kHostHeight;
    const bool is_nearer_to_leader = first == second + 1 && farthest != leader;
    return has_only_hosts || first == second || is_nearer_to_leader ? kNoPath : farthest;
  }

  std::size_t bytes() const { return sides_.size() * sizeof(MrpTree); }
  std::size_t spare_bytes() const { return sides_.capacity() * sizeof(MrpTree) - bytes(); }

 private:
  static constexpr std::uint8_t kHostHeight = 1;
  static constexpr std::uint8_t kMostHeight = std::numeric_limits<std::uint8_t>::max();

  // All sides but that of `path`. One without known members is not flat.
  bool is_flat(PathNo path) const {
    std::uint32_t most = 0;
    std::size_t sides = 0, largest = 0;
    for (PathNo i = 0; i < sides_.size(); ++i) {
      if (i == path) continue;
      if (!sides_[i].has(MrpTree::kSideIsFlat)) return false;
      most = std::max(most, sides_[i].members);
      ++sides;
    }
    for (PathNo i = 0; i < sides_.size(); ++i) {
      if (i != path && sides_[i].members == most) ++largest;
    }
    const bool are_equal = sides <= 1 || (std::has_single_bit(most) && largest + 1 >= sides);
    return sides > 0 && are_equal && is_in_order(in_order(path));
  }
  // No addresses overlap, and no side but the last has fewer members than the first.
  bool is_in_order(std::span<const PathNo> paths) const {
    for (std::size_t i = 1; i < paths.size(); ++i) {
      const MrpTree &before = sides_[paths[i - 1]], &side = sides_[paths[i]];
      if (before.highest >= side.lowest || before.members < side.members) return false;
    }
    return true;
  }

  std::vector<MrpTree> sides_;  // by path; heights from here
};

}  // namespace cepheus::fabric
