// The parameter `reproducible`: the bits of long floating-point sums and products, which depend on
// the pairs in which they are computed. docs/parameters.md has what each value promises.
#pragma once

namespace cepheus::coll {

enum class Reproducible : int {
  // Those of pairs by rank, on every path. So they go by the switches only in groups that add in these
  // pairs, and else by messages.
  kRank = 0,
  kTree = 1,  // by the switches of every group, in pairs of its tree
  kOff = 2    // the same, or by messages, if the safeguard chooses them
};
inline constexpr const char* kReproducible[] = {"rank", "tree", "off"};

}  // namespace cepheus::coll
