// The rounds of a reduction by messages in which each element gets exactly the pairs of
// arithmetic/pairs.h, by member. Pure.
//
// Vector halving with the distances 1, 2, 4 ... In round k a block of 2^k members meets the next
// block, and both have a result of their own members, spread over them:
//
//   members  0 1 2 3      round 0   0 keeps the first half of (0 1), 1 the second one
//            | | | |                2 keeps the first half of (2 3), 3 the second one
//            0-1 2-3      round 1   0 keeps the first quarter of (0 1)(2 3), 2 the second one,
//            0---2                  1 the third, 3 the fourth one
//              1---3
//
// If the number of members is no power of two, the last block of a round may have fewer members. Then
// it sends all that it has to the block before it, and takes no part in later rounds.
//
// Afterwards the same rounds in reverse bring the whole result to all members. A member sends and
// receives up to 2 vectors, whatever the number of members; with a power of two N, 2 (N - 1) / N. That is
// Rabenseifner's number.
//
// Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH"
// (2005), which has other distances, and so other pairs.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace cepheus::coll {

// Elements [first, end) of the vector.
struct Slice {
  std::size_t first, end;
  std::size_t size() const { return end - first; }
};

struct PairTransfer {
  int peer;
  Slice slice;
};

class PairRounds {
 public:
  PairRounds(int member, int members, std::size_t elements)
      : member_(static_cast<unsigned>(member)),
        members_(static_cast<unsigned>(members)),
        elements_(elements),
        levels_(static_cast<int>(std::bit_width(members_ - 1))) {}

  int count() const { return 2 * levels_; }
  // Received elements are combined with this member's. Else they take their places.
  bool combines(int round) const { return round < levels_; }
  // ... as the right operands: the other members are behind this one.
  bool is_left(int round) const { return (member_ >> round & 1) == 0; }
  // What this member sends and receives in a round. Two members meet in one round that combines, and in
  // one other at most.
  void plan(int round, std::vector<PairTransfer>& sends, std::vector<PairTransfer>& receives) const;

 private:
  Slice slice_of(unsigned place, int level) const;
  void plan_halving(int level, std::vector<PairTransfer>& sends,
                    std::vector<PairTransfer>& receives) const;

  const unsigned member_, members_;
  const std::size_t elements_;
  const int levels_;
};

}  // namespace cepheus::coll
