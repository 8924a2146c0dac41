// Allreduce and Barrier by unicasts, as MPI libraries do them: rounds of messages between ranks.
// exchange_run.h carries them out over RC connections. The hosts' reduction itself is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fabric-sim/experiments/schedule.h"

namespace cepheus::sim {

// A rank's part in one round: it sends at once, then waits for a message.
struct Exchange {
  std::optional<Rank> to = {};
  std::uint64_t bytes = 0;  // of the sent message
  std::optional<Rank> from = {};
};

// Of each rank, in order: none begins before the one before it has ended.
using Exchanges = std::vector<std::vector<Exchange>>;

std::size_t messages_of(const Exchanges& exchanges);

// `bytes` of a vector of doubles at each rank; 0: a barrier. Vectors are split at whole doubles.

// With partners at distance 1, 2, 4 .., whole vectors. Precondition: a power of two.
Exchanges recursive_doubling(std::size_t ranks, std::uint64_t bytes);
// Halves, quarters .. of the vector with these partners; then back. Precondition: a power of two.
Exchanges rabenseifner(std::size_t ranks, std::uint64_t bytes);
// Each rank's part goes round and collects, and then its sum goes round.
Exchanges ring(std::size_t ranks, std::uint64_t bytes);
// Sums are scattered in ceil(log2 p) rounds over a circulant graph, and gathered in as many, for any
// number of ranks (J. L. Träff, arXiv 2410.14234).
Exchanges circulant_allreduce(std::size_t ranks, std::uint64_t bytes);
// Every rank sends its vector to every other at once.
Exchanges direct(std::size_t ranks, std::uint64_t bytes);

// ceil(log2 p) rounds over the same graph, for any number of ranks.
Exchanges circulant_barrier(std::size_t ranks);
// p - 1 rounds, in each to the next rank.
Exchanges ring_barrier(std::size_t ranks);
// Up a binomial tree and down again.
Exchanges tree_barrier(std::size_t ranks);

}  // namespace cepheus::sim
