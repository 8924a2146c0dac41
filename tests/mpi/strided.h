/* Data with gaps: blocks of 16 bytes, 24 apart. No broadcast may change the gaps or the bytes
 * behind the data. */
#ifndef CEPHEUS_TESTS_MPI_STRIDED_H
#define CEPHEUS_TESTS_MPI_STRIDED_H

#include <mpi.h>
#include <stddef.h>
#include <string.h>

enum { kBlock = 16, kStride = 24, kGuard = 64, kGuardByte = 0x5A };

/* Size of the memory for `bytes` of data, with or without gaps, and for its guard bytes. */
static inline size_t guarded_size(size_t bytes) {
  return bytes / kBlock * kStride + kBlock + kGuard;
}

static inline int is_guarded(const unsigned char* p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != kGuardByte) return 0;
  return 1;
}

/* Whole blocks where `strided`. */
static inline void put_guarded(unsigned char* memory, const unsigned char* plain, size_t bytes,
                               int strided) {
  if (!strided) {
    if (memory != plain) memcpy(memory, plain, bytes);
    memset(memory + bytes, kGuardByte, kGuard);
    return;
  }
  const size_t blocks = bytes / kBlock;
  memset(memory, kGuardByte, blocks * kStride + kGuard);
  for (size_t b = 0; b < blocks; b++) memcpy(memory + b * kStride, plain + b * kBlock, kBlock);
}

/* 0: a guard byte has changed. */
static inline int get_guarded(unsigned char* plain, const unsigned char* memory, size_t bytes,
                              int strided) {
  if (!strided) {
    if (memory != plain) memcpy(plain, memory, bytes);
    return is_guarded(memory + bytes, kGuard);
  }
  const size_t blocks = bytes / kBlock;
  int intact = is_guarded(memory + blocks * kStride, kGuard);
  for (size_t b = 0; b < blocks; b++) {
    memcpy(plain + b * kBlock, memory + b * kStride, kBlock);
    intact &= is_guarded(memory + b * kStride + kBlock, kStride - kBlock);
  }
  return intact;
}

/* One block with its gap; the caller frees it. */
static inline MPI_Datatype strided_type(void) {
  MPI_Datatype element, type;
  MPI_Type_contiguous(kBlock, MPI_BYTE, &element);
  MPI_Type_create_resized(element, 0, kStride, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&element);
  return type;
}

#endif
