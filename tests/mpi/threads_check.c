/* MPI_THREAD_MULTIPLE: threads that broadcast at once, each on a communicator of its own.
 *
 *   threads_check [--threads N] [--count N] [--outstanding K]
 *
 * --outstanding: each thread has up to K (1 to 16) non-blocking broadcasts in flight before it waits
 * for them, every other time behind a blocking one; without it there are blocking ones only.
 */
#include <pthread.h>

#include "tests/mpi/pattern.h"

enum { kLargest = 300000, kMost = 16 };

struct worker {
  pthread_t thread;
  MPI_Comm comm;
  long index, count, outstanding;
  int wrong;
};

struct one {
  unsigned char* memory;
  uint64_t key;
  size_t bytes;
  int root;
};

static void choose(struct one* it, const struct worker* w, long i, int size) {
  it->key = mix((uint64_t)(w->index * 1000003 + i));
  it->bytes = (size_t)(it->key % (i % 8 == 7 ? kLargest : 3000));
  it->root = (int)(i % size);
}

static void* work(void* arg) {
  struct worker* w = arg;
  struct one flying[kMost + 1];
  MPI_Request requests[kMost + 1];
  int is_behind = 1;
  for (long k = 0; k <= w->outstanding; k++) flying[k].memory = get_memory(kLargest);
  struct one* blocking = &flying[w->outstanding];
  int size;
  MPI_Comm_size(w->comm, &size);
  for (long i = 0; i < w->count;) {
    int n = 0;
    for (; n < w->outstanding && i < w->count - 1; n++, i++) {
      struct one* it = &flying[n];
      choose(it, w, i, size);
      before_broadcast(it->memory, it->bytes, it->key, it->root, w->comm);
      MPI_Ibcast(it->memory, (int)it->bytes, MPI_BYTE, it->root, w->comm, &requests[n]);
    }
    if (is_behind || n == 0) {
      choose(blocking, w, i++, size);
      w->wrong |= broadcast_and_check(blocking->memory, blocking->bytes, blocking->key,
                                      blocking->root, w->comm);
    }
    is_behind = !is_behind;
    requests[n] = MPI_REQUEST_NULL;
    MPI_Waitall(n + 1, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < n; k++) {
      const struct one* it = &flying[k];
      w->wrong |= after_broadcast(it->memory, it->bytes, it->key, it->root, w->comm);
    }
  }
  for (long k = 0; k <= w->outstanding; k++) free(flying[k].memory);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0, wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const long threads = atol(option(argc, argv, "--threads", "4"));
  const long count = atol(option(argc, argv, "--count", "200"));
  const long outstanding = atol(option(argc, argv, "--outstanding", "0"));
  if (outstanding < 0 || outstanding > kMost) {
    fprintf(stderr, "threads_check: --outstanding %ld: give 0 to %d\n", outstanding, kMost);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "threads_check: MPI has no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  struct worker* workers = get_memory((size_t)threads * sizeof *workers);
  for (long i = 0; i < threads; i++) {
    workers[i].index = i;
    workers[i].count = count;
    workers[i].outstanding = outstanding;
    workers[i].wrong = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
  }
  for (long i = 0; i < threads; i++) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  for (long i = 0; i < threads; i++) {
    pthread_join(workers[i].thread, NULL);
    wrong |= workers[i].wrong;
  }
  for (long i = 0; i < threads; i++) MPI_Comm_free(&workers[i].comm);
  free(workers);
  return finish(wrong, "broadcasts by threads", threads * count);
}
