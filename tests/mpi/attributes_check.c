/* Communicators with the program's attributes: broadcasts on them call none of its functions,
 * MPI_Comm_dup copies once, MPI_Comm_free deletes once. Each is duplicated from the one before,
 * broadcasts before that and after it, and they are freed in another order than they were made.
 */
#include "tests/mpi/pattern.h"

enum { kComms = 6 };

static int copies, deletes;

static int copy(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
  (void)comm;
  (void)key;
  (void)state;
  copies++;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int key, void* value, void* state) {
  (void)comm;
  (void)key;
  (void)value;
  (void)state;
  deletes++;
  return MPI_SUCCESS;
}

static int differs(const char* what, int value, int wanted) {
  if (value == wanted) return 0;
  fprintf(stderr, "attributes_check: %d %s instead of %d\n", value, what, wanted);
  return 1;
}

static int broadcasts(MPI_Comm comm, uint64_t key) {
  unsigned char memory[70000];
  return broadcast_and_check(memory, 100, key, 0, comm) |
         broadcast_and_check(memory, sizeof memory, key, 1, comm);
}

int main(int argc, char** argv) {
  static const int order[kComms] = {2, 0, 5, 1, 4, 3};
  int rank, size, key, wrong = 0, value = 4711, found = 0;
  void* kept = NULL;
  MPI_Comm comms[kComms];
  start_mpi(&argc, &argv, &rank, &size);
  MPI_Comm_create_keyval(copy, delete, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_set_attr(comms[0], key, &value);
  for (int i = 0; i < kComms; i++) {
    wrong |= broadcasts(comms[i], (uint64_t)i);
    wrong |= differs("copies", copies, i);
    if (i + 1 < kComms) MPI_Comm_dup(comms[i], &comms[i + 1]);
  }
  for (int i = 0; i < kComms; i++) {
    for (int left = i; left < kComms; left++) wrong |= broadcasts(comms[order[left]], 100);
    MPI_Comm_get_attr(comms[order[i]], key, &kept, &found);
    wrong |= differs("attributes", found && kept == &value, 1);
    MPI_Comm_free(&comms[order[i]]);
    wrong |= differs("deletes", deletes, i + 1);
  }
  wrong |= differs("copies", copies, kComms - 1);
  MPI_Comm_free_keyval(&key);
  return finish(wrong, "communicators", kComms);
}
