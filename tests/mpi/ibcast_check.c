/* Non-blocking broadcasts, every byte checked on every rank. Plain MPI.
 *
 *   mpirun ... ibcast_check [--count N] [--max BYTES] [--seed S] [--outstanding K]
 *                           [--type bytes|vector|mixed] [--mix 0|1] [--free 0|1] [--until FILE]
 *   mpirun ... ibcast_check --moved DIR [--count N] [--max BYTES]
 *   mpirun ... ibcast_check --late DIR [--delay SECONDS] [--max BYTES]
 *   mpirun ... ibcast_check --absent 1 | --short COMMUNICATOR | --file FILE | --forget 1 | --leave 1
 *
 * Without a mode: N rounds of up to K broadcasts at once, of random sizes from random roots,
 * completed in one of several ways; --mix 1: blocking broadcasts among them; --free 1: each round
 * on a communicator that is freed before its broadcasts have completed; --until: continues after
 * N rounds until FILE exists; rank 0 prints "started" after the first. vector, mixed: as in
 * broadcast_check.
 * --moved: no rank calls MPI between the start and the arrival of all data at all ranks; files in
 * DIR signal the arrival. --late: rank 1 starts only after the root has waited for SECONDS.
 * --absent: other ranks than the root are in MPI_Recv until its MPI_Wait has returned. --short: the
 * last rank passes too few bytes, and its MPI_Wait reports that once while another broadcast is
 * under way, to that communicator: world or duplicate; freed: a duplicate is freed before the wait.
 * --file: other ranks than the root wait until
 * they have read FILE, and then the root starts. --forget: other ranks than the root free their
 * requests, and then the root starts. --leave: the root frees the communicator, and then the other
 * ranks start. Rank 0 prints the performance variables of coll/cepheus, if there are any. Exit 0
 * and a line "ok: ..." if all was right; else 1 and the error.
 */
#include <unistd.h>

#include "tests/mpi/pattern.h"
#include "tests/mpi/strided.h"
#include "tests/mpi/variables.h"

enum { kMost = 32, kTimeLimit = 120 };

struct one {
  unsigned char* memory;
  size_t bytes;
  uint64_t key;
  int root;
};

static int rank, ranks;
static int strided;

static void die(const char* what) {
  fprintf(stderr, "ibcast_check: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void prepare(struct one* it, unsigned char* plain) {
  before_broadcast(plain, it->bytes, it->key, it->root, MPI_COMM_WORLD);
  put_guarded(it->memory, plain, it->bytes, strided);
}

static int is_wrong(const struct one* it, unsigned char* plain, const char* what) {
  const int intact = get_guarded(plain, it->memory, it->bytes, strided);
  const size_t at = check(plain, it->bytes, it->key);
  if (at == it->bytes && intact) return 0;
  fprintf(stderr, "ibcast_check: rank %d: %s of %zu bytes from %d: byte %zu %s wrong\n", rank, what,
          it->bytes, it->root, at,
          at != it->bytes ? "is" : "is the end, and memory in gaps or behind is");
  return 1;
}

/* The type is freed at once: the broadcast holds it. */
static void start(const struct one* it, MPI_Comm comm, MPI_Request* request) {
  if (!strided) {
    MPI_Ibcast(it->memory, (int)it->bytes, MPI_BYTE, it->root, comm, request);
    return;
  }
  MPI_Datatype type = strided_type();
  MPI_Ibcast(it->memory, (int)(it->bytes / kBlock), type, it->root, comm, request);
  MPI_Type_free(&type);
}

/* Each rank completes them in its own way. The list begins with an inactive request. */
static void complete(int n, MPI_Request* requests, uint64_t how) {
  int index = 0, flag = 0, done = 0, indices[kMost + 1];
  MPI_Status statuses[kMost + 1];
  switch (how % 8) {
    case 0:
      MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
      break;
    case 1:
      for (int i = n; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      break;
    case 2:
      while (index != MPI_UNDEFINED) MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
      break;
    case 3:
      while (done != MPI_UNDEFINED) MPI_Waitsome(n, requests, &done, indices, statuses);
      break;
    case 4:
      while (!flag) MPI_Testall(n, requests, &flag, statuses);
      break;
    case 5:
      while (!flag || index != MPI_UNDEFINED)
        MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
      break;
    case 6:
      while (done != MPI_UNDEFINED) MPI_Testsome(n, requests, &done, indices, MPI_STATUSES_IGNORE);
      break;
    default:
      for (int i = 0; i < n; i++) {
        for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
        for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
      }
  }
  for (int i = 1; i < n; i++) {
    if (requests[i] != MPI_REQUEST_NULL) die("a completed request is not MPI_REQUEST_NULL");
  }
}

static size_t size_of(uint64_t key, size_t max) {
  size_t bytes = (size_t)(mix(key) % (max + 1));
  if (mix(key + 1) % 2 == 0) bytes %= 16384;
  if (mix(key + 2) % 50 == 0) bytes = 0;
  return bytes - bytes % kBlock;
}

static int random_rounds(int argc, char** argv) {
  const long count = atol(option(argc, argv, "--count", "50"));
  const size_t max = (size_t)atoll(option(argc, argv, "--max", "262144"));
  const uint64_t seed = strtoull(option(argc, argv, "--seed", "1"), NULL, 0);
  const int outstanding = atoi(option(argc, argv, "--outstanding", "4"));
  const int mixed = atoi(option(argc, argv, "--mix", "0"));
  const int freed = atoi(option(argc, argv, "--free", "0"));
  const char* until = option(argc, argv, "--until", NULL);
  if (outstanding < 1 || outstanding > kMost) die("--outstanding is out of range");

  unsigned char* plain = get_memory(max);
  struct one list[kMost];
  for (int i = 0; i < outstanding; i++) list[i].memory = get_memory(guarded_size(max));
  if (until != NULL) {
    printf("pid %d %d\n", rank, (int)getpid());
    fflush(stdout);
  }
  int wrong = 0, nothing = 0;
  MPI_Request inactive;
  MPI_Send_init(&nothing, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &inactive);
  long round = 0;
  for (int stop = 0; !stop; round++) {
    const uint64_t key = mix(seed * 1000003u + (uint64_t)round);
    const int n = 1 + (int)(mix(key) % (uint64_t)outstanding);
    MPI_Comm comm = MPI_COMM_WORLD;
    if (freed) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Request list_with_inactive[kMost + 1] = {inactive}, *requests = list_with_inactive + 1;
    for (int i = 0; i < n; i++) {
      list[i].key = mix(key + 100 + (uint64_t)i);
      list[i].bytes = size_of(list[i].key, max);
      list[i].root = (int)(mix(list[i].key + 3) % (uint64_t)ranks);
      prepare(&list[i], plain);
      const int blocking = mixed && mix(list[i].key + 4) % 3 == 0;
      if (blocking) {
        requests[i] = MPI_REQUEST_NULL;
        /* Contiguous: broadcasts in flight are of their own memory. */
        wrong |= broadcast_and_check(plain, list[i].bytes, list[i].key, list[i].root, comm);
        list[i].bytes = 0;
        prepare(&list[i], plain);
      } else {
        start(&list[i], comm, &requests[i]);
      }
    }
    if (freed) MPI_Comm_free(&comm);
    complete(n + 1, list_with_inactive, mix(key + 7 + (uint64_t)rank));
    for (int i = 0; i < n; i++) wrong |= is_wrong(&list[i], plain, "MPI_Ibcast");
    stop = round + 1 >= count;
    if (until != NULL) {
      if (round == 0 && rank == 0) print_now("started");
      stop = stop && access(until, F_OK) == 0;
      MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  }
  MPI_Request_free(&inactive);
  for (int i = 0; i < outstanding; i++) free(list[i].memory);
  free(plain);
  return conclude(wrong, "rounds of non-blocking broadcasts", round);
}

static void name_file(char* path, size_t size, const char* directory, long round, int of) {
  snprintf(path, size, "%s/%ld.%d", directory, round, of);
}

static void make_file(const char* directory, long round, int of) {
  char path[4096];
  name_file(path, sizeof path, directory, round, of);
  FILE* file = fopen(path, "w");
  if (file == NULL) die("can't make a file in the directory");
  fclose(file);
}

/* Without calls of MPI. */
static void wait_for_file(const char* directory, long round, int of) {
  char path[4096];
  name_file(path, sizeof path, directory, round, of);
  const double give_up = MPI_Wtime() + kTimeLimit;
  while (access(path, F_OK) != 0) {
    if (MPI_Wtime() > give_up) die("the others' data has not moved without MPI calls");
  }
}

static int moved(int argc, char** argv) {
  const char* directory = option(argc, argv, "--moved", ".");
  const long count = atol(option(argc, argv, "--count", "5"));
  const size_t bytes = (size_t)atoll(option(argc, argv, "--max", "8388608"));
  unsigned char* memory = get_memory(bytes);
  int wrong = 0;
  /* The first broadcast sets the group up, which needs MPI. */
  wrong |= broadcast_and_check(memory, bytes, 99, 0, MPI_COMM_WORLD);
  for (long round = 0; round < count; round++) {
    const uint64_t key = 1000 + (uint64_t)round;
    const int root = (int)(round % ranks);
    before_broadcast(memory, bytes, key, root, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Ibcast(memory, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    const double give_up = MPI_Wtime() + kTimeLimit;
    while (check(memory, bytes, key) != bytes) {
      if (MPI_Wtime() > give_up) die("the data has not moved without MPI calls");
      __asm__ volatile("" ::: "memory"); /* the NIC writes there */
    }
    make_file(directory, round, rank);
    for (int other = 0; other < ranks; other++) wait_for_file(directory, round, other);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong |= check(memory, bytes, key) != bytes;
  }
  free(memory);
  return conclude(wrong, "broadcasts moved without MPI calls", count);
}

static int late(int argc, char** argv) {
  const char* directory = option(argc, argv, "--late", ".");
  const double delay = atof(option(argc, argv, "--delay", "1"));
  const size_t bytes = (size_t)atoll(option(argc, argv, "--max", "1048576"));
  unsigned char* memory = get_memory(bytes);
  int wrong = broadcast_and_check(memory, bytes, 99, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  before_broadcast(memory, bytes, 7, 0, MPI_COMM_WORLD);
  if (rank == 1) wait_for_file(directory, 0, 0);
  MPI_Request request;
  MPI_Ibcast(memory, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  if (rank == 0) {
    int flag = 0;
    for (const double until = MPI_Wtime() + delay; MPI_Wtime() < until;) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      if (flag) die("complete before a rank has started");
    }
    make_file(directory, 0, 0);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  wrong |= check(memory, bytes, 7) != bytes;
  free(memory);
  return conclude(wrong, "broadcast with a late rank", 1);
}

static int absent(void) {
  enum { kBytes = 100000, kRounds = 3 };
  unsigned char* memory = get_memory(kBytes);
  int wrong = 0, message = 0;
  for (int root = 0; root < kRounds; root++) {
    MPI_Request request;
    before_broadcast(memory, kBytes, (uint64_t)root, root, MPI_COMM_WORLD);
    MPI_Ibcast(memory, kBytes, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    if (rank == root) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int other = 0; rank == root && other < ranks; other++)
      if (other != root) MPI_Send(&message, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    if (rank != root) MPI_Recv(&message, 1, MPI_INT, root, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong |= after_broadcast(memory, kBytes, (uint64_t)root, root, MPI_COMM_WORLD);
  }
  free(memory);
  return conclude(wrong, "broadcasts with ranks in MPI_Recv", kRounds);
}

static void others_wait(void) {
  int message = 0;
  for (int other = 1; rank == 0 && other < ranks; other++)
    MPI_Send(&message, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
  if (rank != 0) MPI_Recv(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void rank_0_waits(void) {
  int message = 0;
  for (int other = 1; rank == 0 && other < ranks; other++)
    MPI_Recv(&message, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Send(&message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

static int with_file(const char* path) {
  enum { kBytes = 1000 };
  unsigned char memory[kBytes], read[kBytes];
  int wrong = broadcast_and_check(memory, kBytes, 1, 0, MPI_COMM_WORLD);
  before_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
  MPI_Request request, reading;
  if (rank == 0) rank_0_waits();
  MPI_Ibcast(memory, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  if (rank != 0) {
    MPI_File file;
    if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
      die("can't open the file");
    MPI_File_iread(file, read, kBytes, MPI_BYTE, &reading);
    MPI_Wait(&reading, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    rank_0_waits();
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  wrong |= after_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
  return conclude(wrong, "broadcasts with a file read meanwhile", 1);
}

/* A blocking broadcast is complete behind those before it. */
static int forget(void) {
  enum { kBytes = 1000 };
  unsigned char memory[kBytes], other[kBytes];
  int wrong = broadcast_and_check(memory, kBytes, 1, 0, MPI_COMM_WORLD);
  before_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
  if (rank == 0) rank_0_waits();
  MPI_Request request;
  MPI_Ibcast(memory, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  if (rank != 0) {
    MPI_Request_free(&request);
    rank_0_waits();
  }
  wrong |= broadcast_and_check(other, kBytes, 3, 0, MPI_COMM_WORLD);
  wrong |= after_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return conclude(wrong, "broadcast with freed requests", 1);
}

static int leave(void) {
  enum { kBytes = 100000, kRounds = 3 };
  unsigned char* memory = get_memory(kBytes);
  int wrong = 0;
  for (int round = 0; round < kRounds; round++) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    wrong |= broadcast_and_check(memory, kBytes, 1, 0, comm);
    before_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
    if (rank != 0) others_wait();
    MPI_Request request;
    MPI_Ibcast(memory, kBytes, MPI_BYTE, 0, comm, &request);
    MPI_Comm_free(&comm);
    if (rank == 0) others_wait();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong |= after_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
  }
  free(memory);
  return conclude(wrong, "broadcasts on communicators that the root frees first", kRounds);
}

static int errors;
static void count_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  errors++;
}

static int with_short_buffer(int is_duplicate) {
  enum { kBytes = 1000 };
  unsigned char memory[kBytes], other[kBytes];
  const int is_last = rank == ranks - 1;
  int class = MPI_SUCCESS, wrong = 0;
  MPI_Request request, behind;
  MPI_Errhandler counting;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Comm_create_errhandler(count_error, &counting);
  if (is_duplicate) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, counting);
  wrong |= broadcast_and_check(memory, kBytes, 1, 0, comm);
  before_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
  before_broadcast(other, kBytes, 3, 0, MPI_COMM_WORLD);
  MPI_Ibcast(memory, is_last ? kBytes / 2 : kBytes, MPI_BYTE, 0, comm, &request);
  if (rank == 0) MPI_Recv(&class, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Ibcast(other, kBytes, MPI_BYTE, 0, comm, &behind);
  MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
  if (class != (is_last ? MPI_ERR_TRUNCATE : MPI_SUCCESS) || errors != is_last) {
    fprintf(stderr, "ibcast_check: rank %d: error class %d, reported %d times\n", rank, class,
            errors);
    wrong = 1;
  }
  if (is_last) MPI_Send(&class, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  MPI_Wait(&behind, MPI_STATUS_IGNORE);
  if (!is_last) wrong |= after_broadcast(memory, kBytes, 2, 0, MPI_COMM_WORLD);
  wrong |= after_broadcast(other, kBytes, 3, 0, MPI_COMM_WORLD);
  if (is_duplicate) MPI_Comm_free(&comm);
  MPI_Errhandler_free(&counting);
  return conclude(wrong, "broadcasts with a short buffer", 1);
}

/* A broadcast has failed, and its communicator is freed before MPI_Wait. Other communicators get its
 * memory, if that was freed. */
static int with_freed_communicator(void) {
  enum { kBytes = 1000, kOthers = 8, kMany = 50 };
  unsigned char memory[kBytes], other[kBytes];
  const int is_last = rank == ranks - 1;
  int class = MPI_SUCCESS, wrong = 0;
  MPI_Request request;
  MPI_Errhandler counting;
  MPI_Comm comm, others[kOthers];
  MPI_Comm_create_errhandler(count_error, &counting);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting); /* libcepheus-mpi.so reports there */
  wrong |= broadcast_and_check(memory, kBytes, 1, 0, comm);
  MPI_Ibcast(memory, is_last ? kBytes / 2 : kBytes, MPI_BYTE, 0, comm, &request);
  for (int i = 0; i < 2 * kMany; i++) { /* the first half completes it, the second half frees */
    if (i == kMany) MPI_Comm_free(&comm);
    wrong |= broadcast_and_check(other, kBytes, 2, 0, MPI_COMM_WORLD);
  }
  for (int i = 0; i < kOthers; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &others[i]);
    MPI_Comm_set_errhandler(others[i], MPI_ERRORS_ARE_FATAL);
  }
  MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
  if (class != (is_last ? MPI_ERR_TRUNCATE : MPI_SUCCESS) || errors != is_last) {
    fprintf(stderr, "ibcast_check: rank %d: error class %d, reported %d times\n", rank, class,
            errors);
    wrong = 1;
  }
  for (int i = 0; i < kOthers; i++) MPI_Comm_free(&others[i]);
  MPI_Errhandler_free(&counting);
  return conclude(wrong, "broadcasts on a freed communicator", 1);
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  start_mpi(&argc, &argv, &rank, &ranks);
  const char* type = option(argc, argv, "--type", "bytes");
  strided = strcmp(type, "vector") == 0 || (strcmp(type, "mixed") == 0 && rank % 2 == 1);
  watch_variables();
  int wrong;
  if (option(argc, argv, "--moved", NULL) != NULL) {
    wrong = moved(argc, argv);
  } else if (option(argc, argv, "--late", NULL) != NULL) {
    wrong = late(argc, argv);
  } else if (atoi(option(argc, argv, "--absent", "0"))) {
    wrong = absent();
  } else if (option(argc, argv, "--file", NULL) != NULL) {
    wrong = with_file(option(argc, argv, "--file", NULL));
  } else if (atoi(option(argc, argv, "--forget", "0"))) {
    wrong = forget();
  } else if (atoi(option(argc, argv, "--leave", "0"))) {
    wrong = leave();
  } else if (*option(argc, argv, "--short", "")) {
    wrong = strcmp(option(argc, argv, "--short", ""), "freed") == 0
                ? with_freed_communicator()
                : with_short_buffer(strcmp(option(argc, argv, "--short", ""), "duplicate") == 0);
  } else {
    wrong = random_rounds(argc, argv);
  }
  if (rank == 0) print_variables();
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return wrong;
}
