/* Broadcasts of mixed sizes from rotating roots for long, every byte checked. Prints the processes'
 * resources at intervals. Every thousandth is on a communicator of its own.
 *
 *   soak_check [--count N] [--seconds S] [--interval S]
 *
 * Ends after N broadcasts or S seconds, whichever is first. An interval's line, the largest of all
 * ranks:   held SECONDS COUNT PRIVATE_KIB SHARED_KIB DESCRIPTORS REGISTERED_BYTES
 *
 * Shared memory is the fabric's, which has a fixed size; a page of it counts once it was needed.
 */
#include <dirent.h>
#include <unistd.h>

#include "tests/mpi/pattern.h"

enum { kMost = 4 << 20, kRound = 500 };

/* A line of /proc/self/status, such as "RssAnon:", in KiB; -1 if there is none. */
static long status_kib(const char* field) {
  char line[256];
  long kib = -1;
  FILE* f = fopen("/proc/self/status", "r");
  if (f == NULL) return -1;
  while (kib < 0 && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, field, strlen(field)) == 0) kib = atol(line + strlen(field));
  fclose(f);
  return kib;
}

static long descriptors(void) {
  long count = 0;
  DIR* d = opendir("/proc/self/fd");
  if (d == NULL) return -1;
  while (readdir(d) != NULL) count++;
  closedir(d);
  return count;
}

/* The performance variable with that end of its name, or -1. */
static long variable(const char* end) {
  int variables = 0, handle_count = 0;
  long result = -1;
  MPI_T_pvar_session session;
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_get_num(&variables);
  for (int i = 0; i < variables; i++) {
    char name[256];
    int size = sizeof name, none = 0, verbosity, class, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    if (MPI_T_pvar_get_info(i, name, &size, &verbosity, &class, &type, &values, NULL, &none, &bind,
                            &readonly, &continuous, &atomic) != MPI_SUCCESS)
      continue;
    if (strlen(name) < strlen(end) || strcmp(name + strlen(name) - strlen(end), end) != 0) continue;
    MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &handle_count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    result = (long)value;
  }
  MPI_T_pvar_session_free(&session);
  return result;
}

static void print_held(double seconds, long count) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long own[4] = {status_kib("RssAnon:"), status_kib("RssShmem:"), descriptors(),
                       variable("cepheus_registered_bytes")};
  long most[4];
  MPI_Reduce(own, most, 4, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  printf("held %.0f %ld %ld %ld %ld %ld\n", seconds, count, most[0], most[1], most[2], most[3]);
  fflush(stdout);
}

static size_t size_of(uint64_t key) {
  const uint64_t kind = key % 100;
  if (kind < 90) return (size_t)(mix(key) % 8192);
  return (size_t)(mix(key) % (kind < 99 ? 262144 : kMost));
}

int main(int argc, char** argv) {
  int provided = 0, rank, size, wrong = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  start_mpi(&argc, &argv, &rank, &size);
  const long count = atol(option(argc, argv, "--count", "1000000"));
  const double seconds = atof(option(argc, argv, "--seconds", "3600"));
  const double interval = atof(option(argc, argv, "--interval", "10"));
  unsigned char* memory = get_memory(kMost);
  const double start = MPI_Wtime();
  double next = start;
  long i = 0;
  enum { kGoOn, kPrint, kStop } what = kGoOn;
  while (what != kStop) {
    for (const long end = i + kRound; i < end && i < count; i++) {
      const uint64_t key = mix((uint64_t)i);
      MPI_Comm comm = MPI_COMM_WORLD;
      if (i % 1000 == 999) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      wrong |= broadcast_and_check(memory, size_of(key), key, (int)(i % size), comm);
      if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    }
    const double now = MPI_Wtime();
    what = now >= next ? kPrint : kGoOn;
    if (i >= count || now - start > seconds) what = kStop;
    int agreed = (int)what;
    MPI_Bcast(&agreed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    what = agreed;
    if (what == kGoOn) continue;
    print_held(now - start, i);
    next = now + interval;
  }
  const int code = conclude(wrong, "broadcasts", i);
  free(memory);
  MPI_T_finalize(); /* first: Open MPI 4.1 crashes the other way round */
  MPI_Finalize();
  return code;
}
