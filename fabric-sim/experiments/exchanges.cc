// Vectors are split as in MPICH: part i of p begins at double i * doubles / p. So parts may be
// empty, and are sent even then.
#include "fabric-sim/experiments/exchanges.h"

#include <bit>
#include <cassert>

#include "fabric-sim/experiments/circulant_graph.h"

namespace cepheus::sim {
namespace {

// Bytes of parts [first, last) of a vector in `ranks` parts.
std::uint64_t bytes_of_parts(std::size_t first, std::size_t last, std::size_t ranks,
                             std::uint64_t bytes) {
  constexpr std::uint64_t kDouble = 8;
  const std::uint64_t doubles = bytes / kDouble;
  return kDouble * (doubles * last / ranks - doubles * first / ranks);
}

circulant_graph graph_of(std::size_t ranks) { return circulant_graph_of(static_cast<int>(ranks)); }

std::size_t skip_of(const circulant_graph& graph, int round) {
  return static_cast<std::size_t>(graph.skips[round]);
}

// A message to the next rank, and one from the rank before.
Exchange to_next(Rank r, std::size_t ranks, std::uint64_t bytes) {
  return {(r + 1) % ranks, bytes, (r + ranks - 1) % ranks};
}

}  // namespace

std::size_t messages_of(const Exchanges& exchanges) {
  std::size_t messages = 0;
  for (const auto& of_rank : exchanges) {
    for (const Exchange& one : of_rank) messages += one.to.has_value();
  }
  return messages;
}

Exchanges recursive_doubling(std::size_t ranks, std::uint64_t bytes) {
  assert(std::has_single_bit(ranks));
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    for (std::size_t bit = 1; bit < ranks; bit *= 2) all[r].push_back({r ^ bit, bytes, r ^ bit});
  }
  return all;
}

Exchanges rabenseifner(std::size_t ranks, std::uint64_t bytes) {
  assert(std::has_single_bit(ranks));
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    std::vector<Exchange> back;
    std::size_t first = 0, parts = ranks;  // of the vector, that this rank still sums
    for (std::size_t bit = 1; bit < ranks; bit *= 2) {
      const Rank partner = r ^ bit;
      parts /= 2;
      const std::size_t low = first, high = first + parts;
      first = r < partner ? low : high;
      const std::size_t other = r < partner ? high : low;
      all[r].push_back({partner, bytes_of_parts(other, other + parts, ranks, bytes), partner});
      back.push_back({partner, bytes_of_parts(first, first + parts, ranks, bytes), partner});
    }
    all[r].insert(all[r].end(), back.rbegin(), back.rend());
  }
  return all;
}

Exchanges ring(std::size_t ranks, std::uint64_t bytes) {
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    for (std::size_t round = 0; round < 2 * (ranks - 1); ++round) {
      const std::size_t part = (r + 2 * ranks - round) % ranks;
      all[r].push_back(to_next(r, ranks, bytes_of_parts(part, part + 1, ranks, bytes)));
    }
  }
  return all;
}

Exchanges circulant_allreduce(std::size_t ranks, std::uint64_t bytes) {
  const circulant_graph graph = graph_of(ranks);
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    // Bytes of parts [first, last), counted from part r; after the last part follows part 0.
    const auto bytes_behind = [&](std::size_t first, std::size_t last) {
      std::uint64_t sum = 0;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t part = (r + i) % ranks;
        sum += bytes_of_parts(part, part + 1, ranks, bytes);
      }
      return sum;
    };
    for (int k = graph.rounds - 1; k >= 0; --k) {
      const std::size_t skip = skip_of(graph, k);
      all[r].push_back({(r + skip) % ranks, bytes_behind(skip, skip_of(graph, k + 1)),
                        (r + ranks - skip) % ranks});
    }
    for (int k = 0; k < graph.rounds; ++k) {
      const std::size_t skip = skip_of(graph, k);
      all[r].push_back({(r + ranks - skip) % ranks, bytes_behind(0, skip_of(graph, k + 1) - skip),
                        (r + skip) % ranks});
    }
  }
  return all;
}

Exchanges direct(std::size_t ranks, std::uint64_t bytes) {
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    for (std::size_t i = 1; i < ranks; ++i)
      all[r].push_back({.to = (r + i) % ranks, .bytes = bytes});
    for (std::size_t i = 1; i < ranks; ++i) all[r].push_back({.from = (r + ranks - i) % ranks});
  }
  return all;
}

Exchanges circulant_barrier(std::size_t ranks) {
  const circulant_graph graph = graph_of(ranks);
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    for (int k = 0; k < graph.rounds; ++k) {
      const std::size_t skip = skip_of(graph, k);
      all[r].push_back({(r + skip) % ranks, 0, (r + ranks - skip) % ranks});
    }
  }
  return all;
}

Exchanges ring_barrier(std::size_t ranks) {
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) all[r].assign(ranks - 1, to_next(r, ranks, 0));
  return all;
}

Exchanges tree_barrier(std::size_t ranks) {
  Exchanges all(ranks);
  for (Rank r = 0; r < ranks; ++r) {
    const std::size_t reach = r == 0 ? std::bit_ceil(ranks) : r & (~r + 1);
    for (std::size_t bit = 1; bit < reach; bit *= 2) {
      if (r + bit < ranks) all[r].push_back({.from = r + bit});
    }
    if (r != 0) all[r].push_back({.to = r - reach, .from = r - reach});
    for (std::size_t bit = reach / 2; bit >= 1; bit /= 2) {
      if (r + bit < ranks) all[r].push_back({.to = r + bit});
    }
  }
  return all;
}

}  // namespace cepheus::sim
