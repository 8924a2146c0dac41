/* Writes what MPI_Init, and COUNT broadcasts behind it, have changed in the process of the last rank.
 *
 *   process_state FILE [COUNT]
 *
 * Into a file: mpirun of Open MPI 5 may put half a line of standard output into standard error.
 * Lines "before WORDS" and "after WORDS" list the state: signal handlers, the alternate signal stack,
 * loaded libraries, descriptors by kind, threads by name, the environment, and whether mremap() to a
 * fixed address works.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern char** environ;

enum { kRestorer = 0x04000000 }; /* the C library's own flag, which it also returns */

static int print_library(struct dl_phdr_info* object, size_t size, void* when) {
  (void)size;
  if (object->dlpi_name[0] != '\0') printf("%s library %s\n", (const char*)when, object->dlpi_name);
  return 0;
}

/* One line an entry: numbers of the link or file beneath it are left out. */
static void print_entries(const char* when, const char* kind, const char* directory,
                          const char* beneath) {
  DIR* const entries = opendir(directory);
  for (struct dirent* each; (each = readdir(entries)) != NULL;) {
    char path[600], text[600] = "";
    if (each->d_name[0] == '.' || atoi(each->d_name) == dirfd(entries)) continue;
    snprintf(path, sizeof path, "%s/%s%s", directory, each->d_name, beneath);
    if (*beneath == '\0') {
      if (readlink(path, text, sizeof text - 1) < 0) continue;
    } else {
      FILE* const file = fopen(path, "r");
      if (file == NULL || fgets(text, sizeof text, file) == NULL) text[0] = '\0';
      if (file != NULL) fclose(file);
    }
    printf("%s %s ", when, kind);
    for (const char* at = text; *at != '\0' && *at != '\n'; at++) {
      if (*at < '0' || *at > '9') putchar(*at);
    }
    putchar('\n');
  }
  closedir(entries);
}

static int moves_to_a_fixed_address(void) {
  const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  void* const from = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const to = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

static void print_state(const char* when) {
  for (int number = 1; number < NSIG; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0) continue;
    Dl_info owner = {0};
    (void)dladdr((void*)action.sa_handler, &owner);
    printf("%s handler %d %s %x\n", when, number,
           owner.dli_fname != NULL        ? owner.dli_fname
           : action.sa_handler == SIG_IGN ? "ignored"
                                          : "default",
           (unsigned)action.sa_flags & ~kRestorer);
  }
  stack_t stack;
  sigaltstack(NULL, &stack);
  printf("%s altstack %p %x\n", when, stack.ss_sp, stack.ss_flags);
  dl_iterate_phdr(print_library, (void*)when);
  print_entries(when, "descriptor", "/proc/self/fd", "");
  print_entries(when, "thread", "/proc/self/task", "/comm");
  for (char** each = environ; *each != NULL; each++)
    printf("%s environment %.*s\n", when, (int)strcspn(*each, "\n"), *each);
  printf("%s mremap %d\n", when, moves_to_a_fixed_address());
  fflush(stdout);
}

int main(int argc, char** argv) {
  const long count = argc > 2 ? atol(argv[2]) : 0;
  int rank, size, data = 0;
  /* The launcher's numbers: MPI is not there yet. */
  const char* const own = getenv("OMPI_COMM_WORLD_RANK");
  const char* const all = getenv("OMPI_COMM_WORLD_SIZE");
  if (argc > 1 && own != NULL && all != NULL && atoi(own) + 1 == atoi(all)) {
    if (freopen(argv[1], "w", stdout) == NULL) return 1;
    print_state("before");
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (long i = 0; i < count; i++) MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == size - 1) print_state("after");
  MPI_Finalize();
  return 0;
}
