/* Broadcasts of random sizes from changing roots, every byte checked on every rank. Plain MPI.
 *
 *   mpirun ... broadcast_check [--count N] [--max BYTES] [--seed S] [--root rotate|random|0]
 *                              [--type bytes|vector|mixed] [--comm world|dup|split]
 *                              [--size BYTES] [--until FILE] [--report SECONDS]
 *
 * --size: every message has that size. --until: continues after COUNT until FILE exists. Rank 0
 * prints "started" on stdout after the first broadcast, and each rank its process id before it.
 * --report: rank 0 prints its progress on stderr at that interval.
 * vector: every rank uses a strided type; mixed: odd ranks use it, even ranks plain bytes, of the
 * same signature. Exit 0 and a line "ok: ..." if all was right; else 1 and the first wrong byte.
 * The longest time of any rank in one broadcast is printed, too.
 */
#include <unistd.h>

#include "tests/mpi/pattern.h"
#include "tests/mpi/strided.h"

struct settings {
  long count;
  size_t max;
  uint64_t seed;
  const char *roots, *type, *comm, *fixed, *until;
  double report;
};

static struct settings settings_of(int argc, char** argv) {
  const struct settings s = {
      .count = atol(option(argc, argv, "--count", "100")),
      .max = (size_t)atoll(option(argc, argv, "--max", "1048576")),
      .seed = strtoull(option(argc, argv, "--seed", "1"), NULL, 0),
      .roots = option(argc, argv, "--root", "rotate"),
      .type = option(argc, argv, "--type", "bytes"),
      .comm = option(argc, argv, "--comm", "world"),
      .fixed = option(argc, argv, "--size", NULL),
      .until = option(argc, argv, "--until", NULL),
      .report = atof(option(argc, argv, "--report", "0")),
  };
  return s;
}

static MPI_Comm communicator(const char* which, int world_rank) {
  MPI_Comm comm = MPI_COMM_WORLD;
  if (strcmp(which, "dup") == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (strcmp(which, "split") == 0)
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comm);
  return comm;
}

/* Half of the sizes small, so that both lanes see traffic; some exactly zero. */
static size_t size_of(uint64_t key, const struct settings* s) {
  size_t bytes = (size_t)(mix(key) % (s->max + 1));
  if (mix(key + 1) % 2 == 0) bytes %= 16384;
  if (mix(key + 2) % 50 == 0) bytes = 0;
  if (s->fixed != NULL) bytes = (size_t)atoll(s->fixed);
  if (strcmp(s->type, "bytes") != 0) bytes -= bytes % kBlock;
  return bytes;
}

static int root_of(const char* roots, long i, uint64_t key, int size) {
  if (strcmp(roots, "rotate") == 0) return (int)(i % size);
  if (strcmp(roots, "random") == 0) return (int)(mix(key + 3) % (uint64_t)size);
  return 0;
}

/* Returns its seconds. */
static double broadcast(unsigned char* memory, size_t bytes, int strided, int root, MPI_Comm comm) {
  MPI_Datatype type_of = strided ? strided_type() : MPI_BYTE;
  const double before = MPI_Wtime();
  MPI_Bcast(memory, (int)(strided ? bytes / kBlock : bytes), type_of, root, comm);
  const double seconds = MPI_Wtime() - before;
  if (strided) MPI_Type_free(&type_of);
  return seconds;
}

static int shall_stop(const struct settings* s, long i, int world_rank, MPI_Comm comm) {
  int stop = i + 1 >= s->count;
  if (s->until == NULL) return stop;
  if (i == 0 && world_rank == 0) print_now("started");
  stop = stop && access(s->until, F_OK) == 0;
  MPI_Bcast(&stop, 1, MPI_INT, 0, comm);
  return stop;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int world_rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  const struct settings s = settings_of(argc, argv);
  MPI_Comm comm = communicator(s.comm, world_rank);
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);

  const int strided =
      strcmp(s.type, "vector") == 0 || (strcmp(s.type, "mixed") == 0 && rank % 2 == 1);
  unsigned char* plain = get_memory(guarded_size(s.max));
  unsigned char* memory = strided ? get_memory(guarded_size(s.max)) : plain;

  if (s.until != NULL) {
    printf("pid %d %d\n", world_rank, (int)getpid());
    fflush(stdout);
  }

  int wrong = 0;
  unsigned long long total = 0;
  double longest = 0;
  double reported = MPI_Wtime();
  long i = 0;
  for (int stop = 0; !stop; i++) {
    const uint64_t key = mix(s.seed * 1000003u + (uint64_t)i);
    const size_t bytes = size_of(key, &s);
    const int root = root_of(s.roots, i, key, size);
    if (rank == root)
      fill(plain, bytes, key);
    else
      memset(plain, 0xEE, bytes);
    put_guarded(memory, plain, bytes, strided);
    const double seconds = broadcast(memory, bytes, strided, root, comm);
    if (seconds > longest) longest = seconds;
    const int intact = get_guarded(plain, memory, bytes, strided);
    const size_t at = check(plain, bytes, key);
    if ((at != bytes || !intact) && !wrong) { /* continue: others are in the next call already */
      fprintf(stderr,
              "broadcast_check: rank %d: broadcast %ld (seed %llu, root %d, %zu bytes): byte %zu "
              "%s wrong\n",
              world_rank, i, (unsigned long long)s.seed, root, bytes, at,
              at != bytes ? "is" : "is the end, and memory in gaps or behind is");
      wrong = 1;
    }
    total += bytes;
    if (s.report > 0 && world_rank == 0 && MPI_Wtime() - reported >= s.report) {
      reported = MPI_Wtime();
      fprintf(stderr, "broadcast_check: %ld of %ld broadcasts, longest %.3f s\n", i + 1, s.count,
              longest);
    }
    stop = shall_stop(&s, i, world_rank, comm);
  }
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  double longest_of_all = 0;
  MPI_Reduce(&longest, &longest_of_all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (world_rank == 0 && !any) {
    printf("ok: %ld broadcasts, %llu bytes, longest %.3f s\n", i, total, longest_of_all);
  }
  if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
  if (strided) free(memory);
  free(plain);
  MPI_Finalize();
  return any;
}
