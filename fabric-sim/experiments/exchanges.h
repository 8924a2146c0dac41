// Allreduce and Barrier by unicasts, as MPI libraries do them: rounds of messages between ranks.
// exchange_run.h carries them out over RC connections. The hosts' reduction itself takes no time.
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

// The exchanges of each rank, in order: each begins when the one before it has ended.
using Exchanges = std::vector<std::vector<Exchange>>;

std::size_t messages_of(const Exchanges& exchanges);

// Each rank has a vector of doubles with `bytes` bytes; 0: a barrier. Vectors are split at whole
// doubles.

// Ranks exchange whole vectors with partners at distance 1, 2, 4 ... Precondition: `ranks` is a
// power of two.
Exchanges recursive_doubling(std::size_t ranks, std::uint64_t bytes);
// The same partners exchange halves, quarters ... of the vector, and then sums in the reverse order.
// Precondition: `ranks` is a power of two.
Exchanges rabenseifner(std::size_t ranks, std::uint64_t bytes);
// Each part of the vector goes round all ranks and collects their sum, which then goes round.
Exchanges ring(std::size_t ranks, std::uint64_t bytes);
// Sums are scattered in ceil(log2 p) rounds over a circulant graph, and gathered in as many, for any
// number of ranks (J. L. Träff, arXiv 2410.14234).
Exchanges circulant_allreduce(std::size_t ranks, std::uint64_t bytes);
// Every rank sends its vector to every other at once.
Exchanges direct(std::size_t ranks, std::uint64_t bytes);

// ceil(log2 p) rounds over the same circulant graph, for any number of ranks.
Exchanges circulant_barrier(std::size_t ranks);
// p - 1 rounds, each with a message to the next rank.
Exchanges ring_barrier(std::size_t ranks);
// Up a binomial tree and down again.
Exchanges tree_barrier(std::size_t ranks);

}  // namespace cepheus::sim
