// Broadcasts without multicast, by MPI libraries, HPL and RDMC. Rank 0 is the root; all others end
// with all `bytes`.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "fabric-sim/experiments/schedule.h"
#include "wire/types.h"

namespace cepheus::sim {

// The root sends to all at once.
Schedule fan_out(std::size_t ranks, std::uint64_t bytes);

// Each rank to the next, slice by slice: pipelined. HPL's increasing ring, and Open MPI's chain of
// fan-out 1.
Schedule chain(std::size_t ranks, std::uint64_t bytes, std::size_t slices);

// Whole, one child after the other.
enum class Tree {
  kFarFirst,   // the root to ranks n/2, n/4 .. 1: r's parent is r without its lowest bit (MPICH)
  kNearFirst,  // the root to ranks 1, 2, 4 ..: r's parent is r without its highest bit (Open MPI)
};
Schedule binomial_tree(std::size_t ranks, std::uint64_t bytes, Tree tree = Tree::kFarFirst);

// HPL's long: a binomial tree spreads the data in equal parts over the ranks, then the parts roll
// round the ring.
Schedule spread_and_roll(std::size_t ranks, std::uint64_t bytes);

// RDMC's: in round t every rank exchanges with its partner along dimension t of a hypercube, modulo
// its dimensions; the root gives block t, the others their newest block (Ganesan and Seshadri,
// ICDCS 2005). Precondition: a power of two.
Schedule binomial_pipeline(std::size_t ranks, std::uint64_t bytes, std::size_t slices);

// The best that unicasts can do: in each of n + ceil(log2 p) - 1 rounds every rank sends and
// receives a block (circulant_graph.h). Any number of ranks.
Schedule circulant(std::size_t ranks, std::uint64_t bytes, std::size_t blocks);

// The number of blocks that makes these rounds shortest, by their closed form: each takes a block's
// time on a link of this rate, and a round trip, because the next block waits for the
// acknowledgement. A block has a packet of 4096 bytes at least.
std::size_t best_blocks(std::size_t ranks, std::uint64_t bytes, wire::BitRate rate,
                        wire::Duration round_trip);

// A round trip between the farthest hosts of a fat-tree: six links of 1 us each way.
inline constexpr wire::Duration kFatTreeRoundTrip = std::chrono::microseconds(12);
// With the best number of blocks there, one under way at once; `rate`: of the links.
Schedule circulant_in_fat_tree(std::size_t ranks, std::uint64_t bytes, wire::BitRate rate);
// A circulant graph's, for the row's note.
std::string setting_of(const Schedule& circulant);

// The best setting of a rival: a careful user would choose it.
struct BestSetting {
  double us = 0;        // the shortest time
  std::string setting;  // the setting with this time, for the row's note
};

// Microseconds of a schedule.
using TimeOfSchedule = std::function<double(const Schedule&)>;

// The best of 1, 2, 4 and 8 large sends of a rank under way at once.
BestSetting best_at_once(Schedule schedule, const TimeOfSchedule& time_of);

// The best of a chain's numbers of slices. Precondition: there is one.
BestSetting best_chain(std::size_t ranks, std::uint64_t bytes,
                       const std::vector<std::size_t>& slices, const TimeOfSchedule& time_of);

// The best of these numbers of blocks and 1, 2, 4 and 8 sends at once. Precondition: there is one.
BestSetting best_circulant(std::size_t ranks, std::uint64_t bytes,
                           const std::vector<std::size_t>& blocks, const TimeOfSchedule& time_of);

}  // namespace cepheus::sim
