/* Bytes from a key, which any rank can check: for the programs in this folder. */
#ifndef CEPHEUS_TESTS_MPI_PATTERN_H
#define CEPHEUS_TESTS_MPI_PATTERN_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

static inline void fill(unsigned char* p, size_t n, uint64_t key) {
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = mix(key + i);
    memcpy(p + i, &word, n - i < 8 ? n - i : 8);
  }
}

/* The first byte that differs from fill(key), or n. */
static inline size_t check(const unsigned char* p, size_t n, uint64_t key) {
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = mix(key + i);
    size_t m = n - i < 8 ? n - i : 8;
    if (memcmp(p + i, &word, m) != 0) {
      for (size_t j = 0; j < m; j++) {
        if (p[i + j] != ((unsigned char*)&word)[j]) return i + j;
      }
    }
  }
  return n;
}

static inline const char* option(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  }
  return fallback;
}

static inline void start_mpi(int* argc, char*** argv, int* rank, int* size) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
}

static inline void* get_memory(size_t bytes) {
  void* memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

/* Fills a rank's memory before a broadcast of `bytes` of `key`: the root's has the data. */
static inline void before_broadcast(unsigned char* memory, size_t bytes, uint64_t key, int root,
                                    MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank == root) {
    fill(memory, bytes, key);
  } else {
    memset(memory, 0xEE, bytes);
  }
}

/* 0 if all data has arrived, else 1 and a line on stderr. */
static inline int after_broadcast(const unsigned char* memory, size_t bytes, uint64_t key, int root,
                                  MPI_Comm comm) {
  const size_t at = check(memory, bytes, key);
  if (at == bytes) return 0;
  int rank;
  MPI_Comm_rank(comm, &rank);
  fprintf(stderr,
          "rank %d of its communicator: broadcast of %zu bytes from %d: byte %zu is wrong\n", rank,
          bytes, root, at);
  return 1;
}

/* One broadcast, checked; 0 if right. */
static inline int broadcast_and_check(unsigned char* memory, size_t bytes, uint64_t key, int root,
                                      MPI_Comm comm) {
  before_broadcast(memory, bytes, key, root, comm);
  MPI_Bcast(memory, (int)bytes, MPI_BYTE, root, comm);
  return after_broadcast(memory, bytes, key, root, comm);
}

/* Rank 0 of the world prints "ok: ..." if no rank counted anything wrong; the exit code. */
static inline int conclude(int wrong, const char* what, long count) {
  int any = 0, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !any) printf("ok: %ld %s\n", count, what);
  return any != 0;
}

/* The same, at the end of MPI. */
static inline int finish(int wrong, const char* what, long count) {
  const int code = conclude(wrong, what, count);
  MPI_Finalize();
  return code;
}

/* A line that a test waits for. */
static inline void print_now(const char* line) {
  puts(line);
  fflush(stdout);
}

#endif
