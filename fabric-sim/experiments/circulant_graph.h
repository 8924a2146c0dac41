/* A broadcast of n blocks among p ranks in n + ceil(log2 p) - 1 rounds, for any p: the best that
 * unicasts can do. In each round every rank sends one block and receives one (J. L. Träff,
 * "Optimal Broadcast Schedules in Logarithmic Time", arXiv 2312.11236).
 *
 * In round k of a phase, rank r sends to rank r + skips[k] (mod p). A phase has q = ceil(log2 p)
 * rounds, and each skip is half of the next one, rounded up. Ranks are relative to the root.
 *
 * This file is C, because bench/mpi_bcast.c broadcasts by it, too.
 */
#pragma once

enum { kMostCirculantRounds = 31 };

struct circulant_graph {
  int ranks;
  int rounds; /* of a phase: q */
  int skips[kMostCirculantRounds + 1];
};

/* The blocks of one rank, in the rounds of a phase: of phase 0, or below 0 where the block belongs
 * to the phase before. In each phase they rise by q. */
struct circulant_blocks {
  int of_round[kMostCirculantRounds];
};

/* Precondition: at least two ranks. */
static inline struct circulant_graph circulant_graph_of(int ranks) {
  struct circulant_graph graph;
  graph.ranks = ranks;
  graph.rounds = 0;
  while (graph.rounds < kMostCirculantRounds && (ranks - 1) >> graph.rounds != 0) ++graph.rounds;
  graph.skips[graph.rounds] = ranks;
  for (int k = graph.rounds - 1; k >= 0; --k) graph.skips[k] = (graph.skips[k + 1] + 1) / 2;
  return graph;
}

static inline int circulant_total_rounds(const struct circulant_graph* graph, int blocks) {
  return blocks + graph->rounds - 1;
}

/* The round of a phase at `round` of a broadcast. The first phase is cut, so that the last one
 * ends with the last round. */
static inline int circulant_cut(const struct circulant_graph* graph, int blocks) {
  return (graph->rounds - (blocks - 1) % graph->rounds) % graph->rounds;
}
static inline int circulant_phase_round(const struct circulant_graph* graph, int blocks,
                                        int round) {
  return (round + circulant_cut(graph, blocks)) % graph->rounds;
}

/* The block that `rank` receives first: it is the smallest skip among those that add up to `rank`,
 * largest first. The root receives none. */
static inline int circulant_first_block(const struct circulant_graph* graph, int rank) {
  int block = -1;
  for (int k = graph->rounds - 1; k >= 0 && rank > 0; --k) {
    if (graph->skips[k] > rank) continue;
    rank -= graph->skips[k];
    block = k;
  }
  return block;
}

/* A search for the blocks of one rank. Each rank x that is not the root first received the block of
 * the smallest skip in x's sum. So the rank takes, in round k, the block of a rank x that lies at
 * least skips[k] before it. Later rounds take blocks of ranks farther away. */
struct circulant_search {
  const struct circulant_graph* graph;
  int rank;    /* plus p, so that ranks before it are not negative */
  int nearest; /* blocks come from ranks before this one */
  int found;   /* rounds that have a block */
  int is_left[kMostCirculantRounds + 1];
  int skip_of_round[kMostCirculantRounds];
};

/* Takes blocks of ranks whose sum begins with `sum`, and goes on with skips up to `largest`. */
static inline void circulant_search_from(struct circulant_search* search, int sum, int largest) {
  const int* const skips = search->graph->skips;
  for (int k = largest; k >= 0 && search->found < search->graph->rounds; --k) {
    const int at = sum + skips[k];
    if (!search->is_left[k] || at >= search->nearest) continue;
    if (at > search->rank - skips[search->found]) continue;
    if (at <= search->rank - skips[search->found + 1]) circulant_search_from(search, at, k - 1);
    if (search->found == search->graph->rounds) return;
    /* The rounds that are left need ranks before `sum`. */
    if (sum > search->rank - skips[search->found + 1]) return;
    search->nearest = at;
    search->is_left[k] = 0;
    search->skip_of_round[search->found++] = k;
  }
}

/* Precondition: 1 <= rank < p. */
static inline struct circulant_blocks circulant_blocks_of(const struct circulant_graph* graph,
                                                          int rank) {
  struct circulant_search search;
  struct circulant_blocks blocks;
  const int rounds = graph->rounds, first = circulant_first_block(graph, rank);
  search.graph = graph;
  search.rank = rank + graph->ranks;
  search.nearest = 2 * graph->ranks;
  search.found = 0;
  for (int k = 0; k <= rounds; ++k) search.is_left[k] = k != first;
  circulant_search_from(&search, 0, rounds);
  for (int k = 0; k < rounds; ++k) {
    /* skips[rounds] = p is the root itself: this round brings the rank's first block. */
    const int skip = search.skip_of_round[k];
    blocks.of_round[k] = skip == rounds ? first : skip - rounds;
  }
  return blocks;
}

/* The block of `blocks` blocks that a rank receives in `round`, or -1 if it receives none. */
static inline int circulant_block(const struct circulant_graph* graph,
                                  const struct circulant_blocks* of, int blocks, int round) {
  const int cut = circulant_cut(graph, blocks), k = (round + cut) % graph->rounds;
  const int block = of->of_round[k] + (round + cut - k) - cut;
  if (block < 0) return -1;
  return block < blocks ? block : blocks - 1;
}
