/* A thread with a small stack broadcasts, while the others only wait for its end. Its first broadcasts
 * set up all that the process and the communicator need.
 *
 *   small_stack_check [--stack KIB]
 */
#include <pthread.h>

#include "tests/mpi/pattern.h"

enum { kMost = 300000, kCount = 60 };

struct work {
  MPI_Comm comm;
  unsigned char* memory;
  int size, wrong;
};

static void* run(void* arg) {
  struct work* w = arg;
  for (int i = 0; i < kCount; i++) {
    const uint64_t key = mix((uint64_t)i);
    const size_t bytes = i % 4 == 3 ? kMost : 1 + (size_t)(key % 3000);
    const int root = i % w->size;
    if (i % 5 != 4) {
      w->wrong |= broadcast_and_check(w->memory, bytes, key, root, w->comm);
      continue;
    }
    MPI_Request request;
    before_broadcast(w->memory, bytes, key, root, w->comm);
    MPI_Ibcast(w->memory, (int)bytes, MPI_BYTE, root, w->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    w->wrong |= after_broadcast(w->memory, bytes, key, root, w->comm);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  struct work work = {.wrong = 0};
  pthread_attr_t attributes;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &work.comm);
  MPI_Comm_size(work.comm, &work.size);
  work.memory = get_memory(kMost);
  pthread_attr_init(&attributes);
  int failed = pthread_attr_setstacksize(&attributes,
                                         (size_t)atol(option(argc, argv, "--stack", "32")) << 10);
  failed |= pthread_create(&thread, &attributes, run, &work);
  if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
  pthread_join(thread, NULL);
  MPI_Comm_free(&work.comm);
  free(work.memory);
  return finish(work.wrong, "broadcasts on a small stack", kCount);
}
