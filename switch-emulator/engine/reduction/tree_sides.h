// The members behind each path of a reduction group's switch, and the path to the root.
//
//   CONFIRM     a child's side, towards the leader      ACTIVATE     all other sides, to a child
//
// The root is in the middle of the tree: no switch is nearer to its farthest member. If two switches
// are equally near, the one at the leader's side is the root. So all switches find the same root from
// the heights of their own sides (docs/protocol.md, "The root of a reduction").
//
// No result depends on its place: if heights were wrong, units would wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "switch-emulator/engine/group/path.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

class TreeSides {
 public:
  void add_path() { sides_.emplace_back(); }
  // A path has left; the last one has its number.
  void remove_path(PathNo path) {
    sides_[path] = sides_.back();
    sides_.pop_back();
  }
  void set_host(PathNo path, Ipv4 host) { sides_[path] = {kHostHeight, 0, host, 1}; }
  // A record has come by the path. Members only join, so one with fewer is older, and has been
  // overtaken.
  void set(PathNo path, const wire::MrpTree& at_far_end) {
    if (at_far_end.members < sides_[path].members) return;
    sides_[path] = at_far_end;
    if (sides_[path].height < kMostHeight) ++sides_[path].height;
  }
  // What is known behind the path, heights from here; without members: nothing.
  const wire::MrpTree& behind(PathNo path) const { return sides_[path]; }
  // The record for the node behind `path`: all other sides. Without members: none is known.
  wire::MrpTree without(PathNo path) const {
    wire::MrpTree others;
    for (PathNo i = 0; i < sides_.size(); ++i) {
      if (i != path && sides_[i].members > 0) others.add(sides_[i]);
    }
    return others;
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

  std::size_t bytes() const { return sides_.size() * sizeof(wire::MrpTree); }
  std::size_t spare_bytes() const { return sides_.capacity() * sizeof(wire::MrpTree) - bytes(); }

 private:
  static constexpr std::uint8_t kHostHeight = 1;
  static constexpr std::uint8_t kMostHeight = std::numeric_limits<std::uint8_t>::max();

  std::vector<wire::MrpTree> sides_;  // by path; heights from here
};

}  // namespace cepheus::fabric
