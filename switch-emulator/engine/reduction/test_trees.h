// All trees of a few switches, for tests.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace cepheus::fabric {

// A tree of switches; those in `hosts` have one host each.
struct TestTree {
  static constexpr std::size_t kMost = 7;
  std::size_t size;
  std::array<std::vector<std::size_t>, kMost> next;
  unsigned hosts = 0;

  bool has_host(std::size_t s) const { return (hosts >> s & 1) != 0; }
  // All leaves of a group's tree have hosts.
  bool is_of_a_group() const {
    for (std::size_t s = 0; s < size; ++s) {
      if (next[s].size() < 2 && !has_host(s)) return false;
    }
    return true;
  }
  // Links from `s` to its farthest host, not by `from`.
  int links(std::size_t s, std::size_t from = kMost) const {
    int most = has_host(s) ? 1 : 0;
    for (const std::size_t to : next[s]) {
      if (to != from) most = std::max(most, 1 + links(to, s));
    }
    return most;
  }
};

// The tree of a Pruefer code.
inline TestTree tree_of(std::size_t size, const std::vector<std::size_t>& code) {
  TestTree tree{size, {}};
  const auto join = [&](std::size_t a, std::size_t b) {
    tree.next[a].push_back(b);
    tree.next[b].push_back(a);
  };
  std::array<int, TestTree::kMost> open{};  // links that a switch does not have yet
  for (std::size_t s = 0; s < size; ++s) open[s] = 1;
  for (const std::size_t s : code) ++open[s];
  for (const std::size_t s : code) {
    std::size_t leaf = 0;
    while (open[leaf] != 1) ++leaf;
    join(leaf, s);
    --open[leaf];
    --open[s];
  }
  std::optional<std::size_t> last;
  for (std::size_t s = 0; s < size && size > 1; ++s) {
    if (open[s] != 1) continue;
    if (last) join(*last, s);
    last = s;
  }
  return tree;
}

// All trees of up to `most` switches; their number.
template <typename Check>
std::size_t for_each_tree(std::size_t most, Check&& check) {
  std::size_t trees = 0;
  for (std::size_t size = 1; size <= most; ++size) {
    std::vector<std::size_t> code(size > 2 ? size - 2 : 0, 0);
    for (bool is_last = false; !is_last; ++trees) {
      check(tree_of(size, code));
      std::size_t i = 0;
      while (i < code.size() && ++code[i] == size) code[i++] = 0;
      is_last = i == code.size();
    }
  }
  return trees;
}

}  // namespace cepheus::fabric
