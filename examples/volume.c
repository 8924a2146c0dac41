/* Writes a block of a replicated volume, flushes it, and reads it back.
 *
 *     volume NAME HOST:PORT,HOST:PORT,... TEXT
 *
 * The replicas are `cepheus-replica serve` on the hosts named, always in the same order.
 */
#include <cepheus/volume.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request that the program waits for. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int is_done, error;
} request_t;
#define REQUEST_INIT \
  { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 }

/* On the library's thread. */
static void on_done(void* arg, int error) {
  request_t* const request = arg;
  pthread_mutex_lock(&request->lock);
  request->is_done = 1;
  request->error = error;
  pthread_cond_signal(&request->changed);
  pthread_mutex_unlock(&request->lock);
}

/* `begun`: the call that took the request, or refused it. */
static void wait_for(request_t* request, int begun, const char* what) {
  int error = begun;
  if (begun == 0) {
    pthread_mutex_lock(&request->lock);
    while (!request->is_done) pthread_cond_wait(&request->changed, &request->lock);
    pthread_mutex_unlock(&request->lock);
    error = request->error;
  }
  if (error == 0) return;
  fprintf(stderr, "%s: %s\n", what, strerror(-error));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: volume NAME HOST:PORT,... TEXT\n");
    return 2;
  }
  cepheus_volume_params_t params = CEPHEUS_VOLUME_PARAMS_INIT;
  params.volume = argv[1];
  params.replicas = argv[2];
  cepheus_volume_h volume;
  char error[512];
  if (cepheus_volume_open(&params, &volume, error, sizeof error) != 0) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  const size_t block = cepheus_volume_block_size(volume);
  char *const written = calloc(1, block), *const found = calloc(1, block);
  if (written == NULL || found == NULL || strlen(argv[3]) >= block) return 1;
  strcpy(written, argv[3]);

  request_t write = REQUEST_INIT, flush = REQUEST_INIT, read = REQUEST_INIT;
  wait_for(&write, cepheus_volume_write(volume, written, block, 0, 0, on_done, &write), "write");
  wait_for(&flush, cepheus_volume_flush(volume, 0, on_done, &flush), "flush");
  wait_for(&read, cepheus_volume_read(volume, found, block, 0, 0, on_done, &read), "read");
  printf("%s\n", found);
  cepheus_volume_close(volume);
  const int is_same = memcmp(written, found, block) == 0;
  free(written);
  free(found);
  return is_same ? 0 : 1;
}
