/* A broadcast on a circulant graph by MPI's point-to-point messages: the best that unicasts can do
 * (fabric-sim/experiments/circulant_graph.h). */
#pragma once

#include <mpi.h>
#include <stdlib.h>

#include "fabric-sim/experiments/circulant_graph.h"

/* Receives that a rank has posted ahead. One send is under way: two would share the link, and both
 * rounds would last longer. */
enum { kCirculantAhead = 16 };

struct circulant_broadcast {
  struct circulant_graph graph;
  struct circulant_blocks own, of_receiver[kMostCirculantRounds];
  int from[kMostCirculantRounds], to[kMostCirculantRounds]; /* ranks; MPI_PROC_NULL: none */
  int blocks, is_root;
  char* buffer;
  long size, block_size;
  MPI_Comm comm;
  MPI_Request send;
  MPI_Request* receives; /* of each block; null at the root */
};

static inline void circulant_begin(struct circulant_broadcast* b, int root) {
  int rank, ranks;
  MPI_Comm_rank(b->comm, &rank);
  MPI_Comm_size(b->comm, &ranks);
  const int own = (rank - root + ranks) % ranks; /* relative to the root */
  b->graph = circulant_graph_of(ranks);
  b->is_root = own == 0;
  if (!b->is_root) b->own = circulant_blocks_of(&b->graph, own);
  for (int k = 0; k < b->graph.rounds; k++) {
    const int receiver = (own + b->graph.skips[k]) % ranks;
    b->from[k] = (rank - b->graph.skips[k] + ranks) % ranks;
    b->to[k] = receiver == 0 ? MPI_PROC_NULL : (receiver + root) % ranks;
    if (receiver != 0) b->of_receiver[k] = circulant_blocks_of(&b->graph, receiver);
  }
  b->send = MPI_REQUEST_NULL;
  b->receives = NULL;
  if (b->is_root) return;
  b->receives = malloc(sizeof(MPI_Request) * (size_t)b->blocks);
  for (int i = 0; i < b->blocks; i++) b->receives[i] = MPI_REQUEST_NULL;
}

static inline int circulant_size_of(const struct circulant_broadcast* b, int block) {
  return (int)(block + 1 < b->blocks ? b->block_size : b->size - block * b->block_size);
}

static inline void circulant_post_receive(struct circulant_broadcast* b, int round) {
  if (b->is_root || round >= circulant_total_rounds(&b->graph, b->blocks)) return;
  const int block = circulant_block(&b->graph, &b->own, b->blocks, round);
  if (block < 0) return;
  MPI_Irecv(b->buffer + block * b->block_size, circulant_size_of(b, block), MPI_BYTE,
            b->from[circulant_phase_round(&b->graph, b->blocks, round)], 0, b->comm,
            &b->receives[block]);
}

/* Not before the round before has ended, or two senders would share a receiver's link. */
static inline void circulant_wait_for_receive(struct circulant_broadcast* b, int round) {
  if (b->is_root || round < 0) return;
  const int block = circulant_block(&b->graph, &b->own, b->blocks, round);
  if (block >= 0) MPI_Wait(&b->receives[block], MPI_STATUS_IGNORE);
}

static inline void circulant_send(struct circulant_broadcast* b, int round) {
  const int k = circulant_phase_round(&b->graph, b->blocks, round);
  if (b->to[k] == MPI_PROC_NULL) return;
  const int block = circulant_block(&b->graph, &b->of_receiver[k], b->blocks, round);
  if (block < 0) return;
  MPI_Wait(&b->send, MPI_STATUS_IGNORE);
  MPI_Isend(b->buffer + block * b->block_size, circulant_size_of(b, block), MPI_BYTE, b->to[k], 0,
            b->comm, &b->send);
}

/* `size` bytes in blocks of `block_size`; 0: one block. Without MPI's errors: they end a program.
 * A rank waits for messages of earlier rounds alone, and has posted the receives of kCirculantAhead
 * rounds more. So the rank in the earliest round never waits for a rank that waits for it. */
static inline void circulant_bcast(char* buffer, long size, long block_size, int root,
                                   MPI_Comm comm) {
  struct circulant_broadcast b;
  b.buffer = buffer;
  b.size = size;
  b.block_size = block_size > 0 && block_size < size ? block_size : size;
  b.blocks = size > 0 ? (int)((size + b.block_size - 1) / b.block_size) : 1;
  b.comm = comm;
  circulant_begin(&b, root);
  for (int round = 0; round < kCirculantAhead; round++) circulant_post_receive(&b, round);
  for (int round = 0; round < circulant_total_rounds(&b.graph, b.blocks); round++) {
    circulant_wait_for_receive(&b, round - 1);
    circulant_send(&b, round);
    circulant_post_receive(&b, round + kCirculantAhead);
  }
  if (!b.is_root) MPI_Waitall(b.blocks, b.receives, MPI_STATUSES_IGNORE);
  MPI_Wait(&b.send, MPI_STATUS_IGNORE);
  free(b.receives);
}
