// The parameter `reproducible`: the bits of long floating-point sums and products, which depend on the pairs
// in which they are computed. docs/parameters.md has what each value promises.
#pragma once

namespace cepheus::coll {

// kRank: those of pairs by rank, on every path. So they go by the switches only in groups that add in
// these pairs, and else by messages. kTree: by the switches in every group, by its tree. kOff: also, and the safeguard may choose
// messages for them.
enum class Reproducible : int { kRank = 0, kTree = 1, kOff = 2 };
inline constexpr const char* kReproducible[] = {"rank", "tree", "off"};

}  // namespace cepheus::coll
