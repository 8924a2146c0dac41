/* Broadcasts in the function that deletes an attribute, while MPI_Comm_free ends its communicator. */
#include "tests/mpi/pattern.h"

enum { kBytes = 5000, kCount = 200 };

static unsigned char* memory;
static int wrong = 0, deleted = 0;

static int broadcast_at_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key;
  (void)value;
  (void)extra;
  deleted++;
  for (int root = 0; root < 2; root++)
    wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)deleted), root, comm);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int rank, size, key;
  start_mpi(&argc, &argv, &rank, &size);
  memory = get_memory(kBytes);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, broadcast_at_end, &key, NULL);
  for (int i = 0; i < kCount; i++) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    /* Before or behind Cepheus' own attribute. */
    if (i % 2 == 0) MPI_Comm_set_attr(comm, key, NULL);
    wrong |= broadcast_and_check(memory, kBytes, mix((uint64_t)i + 1000), i % size, comm);
    if (i % 2 == 1) MPI_Comm_set_attr(comm, key, NULL);
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free_keyval(&key);
  wrong |= deleted != kCount;
  free(memory);
  return finish(wrong, "attributes deleted", deleted);
}
