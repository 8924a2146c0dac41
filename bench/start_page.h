/* Ranks of one machine start together and learn when the last has finished, by a page of shared
 * memory. MPI does not agree on the start: that would be as late as the network that is measured,
 * and its lateness would count as the broadcast's time. Ranks that wait for long call MPI's progress,
 * because MPI_Bcast may return while other ranks still need it: Open MPI's does over TCP.
 *
 *   struct start_page* page = start_page_open(rank, ranks);        collective, uses MPI once
 *   while (start_page_wait(page)) { call(); start_page_finish(page); ... }
 *
 * Rank 0 evaluates each call (start_page_last) and ends the loop (start_page_stop). All times are
 * seconds of CLOCK_MONOTONIC, which is one clock for all processes of a machine.
 */
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kMostRanks = 4096 };
static const double kNotice = 30e-6; /* seconds from the last rank's arrival to the start */
static const double kLong = 100e-6;  /* seconds between calls of MPI's progress */

struct shared_page {
  atomic_uint arrived, started; /* ranks that wait for a start, all calls together; calls begun */
  atomic_uint finished, ended;  /* the same for the end of calls */
  atomic_int stop;
  double start; /* of the call that `started` counts last */
  struct {
    double began, finished;
  } ranks[kMostRanks];
};

struct start_page {
  struct shared_page* shared;
  int rank, ranks;
  unsigned calls;
  int sleeps; /* waiting costs no processor time, but starts are late */
};

/* The last call: from the agreed start to the last rank's return, and the last rank's lateness. */
struct call_times {
  double slowest, late;
};

static inline double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline struct start_page start_page_open(int rank, int ranks) {
  struct start_page page = {NULL, rank, ranks, 0, 0};
  char name[64] = "";
  if (ranks > kMostRanks) MPI_Abort(MPI_COMM_WORLD, 2);
  if (rank == 0) snprintf(name, sizeof name, "/cepheus-bench-%d", (int)getpid());
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  int fd = -1;
  if (rank == 0) {
    fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct shared_page)) != 0) {
      perror("bench: can't make a page of shared memory");
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) fd = shm_open(name, O_RDWR, 0600);
  page.shared = mmap(NULL, sizeof(struct shared_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || page.shared == MAP_FAILED) {
    perror("bench: ranks must share one machine");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  close(fd);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) shm_unlink(name);
  return page;
}

static void make_progress(void) {
  int found;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

static void await(atomic_uint* word, unsigned value, int sleeps) {
  static const struct timespec kLongSleep = {0, 10000000};
  double progressed = seconds_now();
  unsigned seen;
  while ((seen = atomic_load_explicit(word, memory_order_acquire)) != value) {
    if (sleeps) {
      syscall(SYS_futex, word, FUTEX_WAIT, seen, &kLongSleep, NULL, 0);
    } else {
      sched_yield();
      if (seconds_now() < progressed + kLong) continue;
    }
    make_progress();
    progressed = seconds_now();
  }
}

static void publish(atomic_uint* word, unsigned value) {
  atomic_store_explicit(word, value, memory_order_release);
  syscall(SYS_futex, word, FUTEX_WAKE, kMostRanks, NULL, NULL, 0);
}

/* Returns when all ranks have called it. */
static inline void start_page_finish(struct start_page* page) {
  struct shared_page* shared = page->shared;
  shared->ranks[page->rank].finished = seconds_now();
  if (atomic_fetch_add(&shared->finished, 1) + 1 == page->calls * (unsigned)page->ranks)
    publish(&shared->ended, page->calls);
  else
    await(&shared->ended, page->calls, page->sleeps);
}

/* Returns on all ranks at one moment; 0: rank 0 has ended the loop. */
static inline int start_page_wait(struct start_page* page) {
  struct shared_page* shared = page->shared;
  const unsigned call = ++page->calls;
  if (atomic_fetch_add(&shared->arrived, 1) + 1 == call * (unsigned)page->ranks) {
    shared->start = seconds_now() + kNotice;
    publish(&shared->started, call);
  } else {
    await(&shared->started, call, page->sleeps);
  }
  if (atomic_load(&shared->stop)) {
    start_page_finish(page);
    if (page->rank == 0) atomic_store(&shared->stop, 0);
    return 0;
  }
  while (!page->sleeps && seconds_now() < shared->start) sched_yield();
  shared->ranks[page->rank].began = seconds_now();
  return 1;
}

/* On any rank between the end of a call and its own next start_page_wait(). */
static inline struct call_times start_page_last(const struct start_page* page) {
  const struct shared_page* shared = page->shared;
  struct call_times last = {0, 0};
  for (int i = 0; i < page->ranks; i++) {
    const double took = shared->ranks[i].finished - shared->start;
    const double late = shared->ranks[i].began - shared->start;
    if (took > last.slowest) last.slowest = took;
    if (late > last.late) last.late = late;
  }
  return last;
}

/* Rank 0: the next start_page_wait() returns 0 on all ranks. Another loop may follow. */
static inline void start_page_stop(struct start_page* page) {
  atomic_store(&page->shared->stop, 1);
}
