// A block of a round has 2^level members, or fewer if it is the last one. The largest power of two of its
// first members holds its result: member `place` of them has slice_of(place, log2 of their number).
#include "collectives/units/pair_rounds.h"

#include <algorithm>

namespace cepheus::coll {

namespace {

void add(std::vector<PairTransfer>& all, unsigned peer, Slice slice) {
  if (slice.size() > 0) all.push_back({static_cast<int>(peer), slice});
}

}  // namespace

// Bit 0 of the place chooses the half, bit 1 the half of that, and so on.
Slice PairRounds::slice_of(unsigned place, int level) const {
  Slice slice{0, elements_};
  for (int bit = 0; bit < level; ++bit) {
    const std::size_t middle = slice.first + slice.size() / 2;
    ((place >> bit & 1) == 0 ? slice.end : slice.first) = middle;
  }
  return slice;
}

// As of a round that combines.
void PairRounds::plan_halving(int level, std::vector<PairTransfer>& sends,
                              std::vector<PairTransfer>& receives) const {
  const unsigned block = 1u << level;
  const unsigned first = member_ & ~(2 * block - 1), second = first + block;
  if (second >= members_) return;  // this block meets no other one
  const unsigned holders = std::bit_floor(std::min(block, members_ - second));
  const bool is_in_first = member_ < second;
  const unsigned place = member_ - (is_in_first ? first : second);
  if (!is_in_first && place >= holders) return;
  if (holders == block) {
    const unsigned peer = is_in_first ? second + place : first + place;
    const Slice lower = slice_of(place, level + 1), upper = slice_of(place + block, level + 1);
    add(sends, peer, is_in_first ? upper : lower);
    add(receives, peer, is_in_first ? lower : upper);
  } else if (is_in_first) {
    add(receives, second + place % holders, slice_of(place, level));
  } else {
    for (unsigned each = place; each < block; each += holders)
      add(sends, first + each, slice_of(each, level));
  }
}

void PairRounds::plan(int round, std::vector<PairTransfer>& sends,
                      std::vector<PairTransfer>& receives) const {
  sends.clear();
  receives.clear();
  if (combines(round)) return plan_halving(round, sends, receives);
  plan_halving(count() - 1 - round, receives, sends);
}

}  // namespace cepheus::coll
