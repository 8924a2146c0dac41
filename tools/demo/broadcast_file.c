/* Broadcasts a file from rank 0 to all ranks and shows every rank's SHA-256. Plain MPI: it knows
 * nothing of Cepheus.
 *
 *   mpirun ... broadcast_file FILE [--hold | --repeat]
 *
 * --hold: rank 0 waits for the end of standard input before it ends, so that its groups can be
 * looked at. --repeat: until then the file goes from each rank in turn to all others.
 */
#include <mpi.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kDigest = 32, kHex = 2 * kDigest + 1 };

static void die(const char* what, const char* why) {
  fprintf(stderr, "broadcast_file: %s: %s\n", what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static unsigned char* read_file(const char* path, uint64_t* size) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) die(path, "can't be opened");
  if (fseek(file, 0, SEEK_END) != 0) die(path, "is not a regular file");
  long end = ftell(file);
  if (end < 0) die(path, "is not a regular file");
  rewind(file);
  unsigned char* data = malloc(end > 0 ? (size_t)end : 1);
  if (data == NULL) die(path, "does not fit into memory");
  if (fread(data, 1, (size_t)end, file) != (size_t)end) die(path, "can't be read");
  fclose(file);
  *size = (uint64_t)end;
  return data;
}

static void sha256(const unsigned char* data, uint64_t size, char hex[kHex]) {
  unsigned char digest[kDigest];
  unsigned length = 0;
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 ||
      EVP_DigestUpdate(ctx, data, size) != 1 || EVP_DigestFinal_ex(ctx, digest, &length) != 1) {
    die("sha256", "OpenSSL failed");
  }
  EVP_MD_CTX_free(ctx);
  for (unsigned i = 0; i < length; i++) sprintf(hex + 2 * i, "%02x", digest[i]);
}

/* MPI counts are ints: larger files go as pieces of 1 GiB. */
static void broadcast(unsigned char* data, uint64_t bytes, int root) {
  const uint64_t piece = (uint64_t)1 << 30;
  for (uint64_t at = 0; at < bytes; at += piece) {
    MPI_Bcast(data + at, (int)(bytes - at < piece ? bytes - at : piece), MPI_BYTE, root,
              MPI_COMM_WORLD);
  }
}

/* Waits a moment, as a program computes between two broadcasts; false at the end of standard
 * input. */
static int goes_on(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char byte;
  return poll(&input, 1, 20) <= 0 || read(STDIN_FILENO, &byte, 1) > 0;
}

static void repeat(unsigned char* data, uint64_t bytes, int rank, int size) {
  for (int root = 0;; root = (root + 1) % size) {
    int more = rank == 0 ? goes_on() : 0;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!more) return;
    broadcast(data, bytes, root);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int holds = argc == 3 && strcmp(argv[2], "--hold") == 0;
  const int repeats = argc == 3 && strcmp(argv[2], "--repeat") == 0;
  if (argc != 2 && !holds && !repeats) die("usage", "broadcast_file FILE [--hold | --repeat]");

  uint64_t bytes = 0;
  unsigned char* data = rank == 0 ? read_file(argv[1], &bytes) : NULL;
  MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank != 0) {
    data = calloc(bytes > 0 ? bytes : 1, 1);
    if (data == NULL) die(argv[1], "does not fit into memory");
  }
  broadcast(data, bytes, 0);

  char own[kHex] = "";
  sha256(data, bytes, own);
  char* all = rank == 0 ? malloc((size_t)size * kHex) : NULL;
  MPI_Gather(own, kHex, MPI_CHAR, all, kHex, MPI_CHAR, 0, MPI_COMM_WORLD);
  int differ = 0;
  if (rank == 0) {
    printf("%llu bytes\n", (unsigned long long)bytes);
    for (int i = 0; i < size; i++) {
      const char* hex = all + (size_t)i * kHex;
      printf("  rank %-3d sha256 %s%s\n", i, hex, strcmp(hex, all) == 0 ? "" : "  DIFFERS");
      if (strcmp(hex, all) != 0) differ = 1;
    }
    fflush(stdout);
  }
  free(all);
  if (repeats) repeat(data, bytes, rank, size);
  free(data);
  if (holds) {
    while (rank == 0 && getchar() != EOF) continue;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return differ;
}
