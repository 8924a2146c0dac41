/* MPI_THREAD_MULTIPLE: threads that broadcast at once, each on a communicator of its own.
 *
 *   threads_check [--threads N] [--count N]
 */
#include <pthread.h>

#include "tests/mpi/pattern.h"

enum { kMost = 300000 };

struct worker {
  pthread_t thread;
  MPI_Comm comm;
  long index, count;
  int wrong;
};

static void* work(void* arg) {
  struct worker* w = arg;
  unsigned char* memory = get_memory(kMost);
  int size;
  MPI_Comm_size(w->comm, &size);
  for (long i = 0; i < w->count; i++) {
    const uint64_t key = mix((uint64_t)(w->index * 1000003 + i));
    const size_t bytes = i % 8 == 7 ? (size_t)(key % kMost) : (size_t)(key % 3000);
    w->wrong |= broadcast_and_check(memory, bytes, key, (int)(i % size), w->comm);
  }
  free(memory);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0, wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const long threads = atol(option(argc, argv, "--threads", "4"));
  const long count = atol(option(argc, argv, "--count", "200"));
  if (provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "threads_check: MPI gives no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  struct worker* workers = get_memory((size_t)threads * sizeof *workers);
  for (long i = 0; i < threads; i++) {
    workers[i].index = i;
    workers[i].count = count;
    workers[i].wrong = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
  }
  for (long i = 0; i < threads; i++) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  for (long i = 0; i < threads; i++) {
    pthread_join(workers[i].thread, NULL);
    wrong |= workers[i].wrong;
  }
  for (long i = 0; i < threads; i++) MPI_Comm_free(&workers[i].comm);
  const int code = conclude(wrong, "broadcasts by threads", threads * count);
  free(workers);
  MPI_Finalize();
  return code;
}
