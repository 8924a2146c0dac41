/* nbdkit's plug-in for replicated volumes (docs/replica.md): a block device for any NBD client.
 *
 *     nbdkit cepheus volume=NAME replicas=HOST:PORT,HOST:PORT,HOST:PORT
 *
 * One process has the volume from its start to its end. Any number of clients and connections share
 * it.
 */
#define NBDKIT_API_VERSION 2
#include <cepheus/volume.h>
#include <errno.h>
#include <nbdkit-plugin.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static cepheus_volume_params_t params = CEPHEUS_VOLUME_PARAMS_INIT;
static cepheus_volume_h volume;

static const char kHelp[] =
    "volume=NAME                 (required) open the volume of this name\n"
    "replicas=HOST:PORT,...      (required) name all replicas, always in the same order\n"
    "device=NAME                 use this RDMA device; default: the nearest usable one\n"
    "depth=N                     allow N requests at once, 1 to 1024; default: 64\n"
    "copy-rate=BYTES             copy at most these bytes per second to returning replicas, such "
    "as "
    "100M; default: no limit\n"
    "open-timeout=MILLISECONDS   wait this time for replicas at the start; default: 10000\n"
    "multicast=cepheus|mcrdma    multicast writes by these groups; default: cepheus";

static int config(const char* key, const char* value) {
  if (strcmp(key, "volume") == 0) {
    params.volume = value;
  } else if (strcmp(key, "replicas") == 0) {
    params.replicas = value;
  } else if (strcmp(key, "device") == 0) {
    params.device = value;
  } else if (strcmp(key, "depth") == 0) {
    if (nbdkit_parse_unsigned("depth", value, &params.depth) == -1) return -1;
    if (params.depth == 0 || params.depth > 1024) {
      nbdkit_error("depth=%s is out of range; give 1 to 1024", value);
      return -1;
    }
  } else if (strcmp(key, "copy-rate") == 0) {
    const int64_t rate = nbdkit_parse_size(value);
    if (rate == -1) return -1;
    params.copy_rate = (uint64_t)rate;
  } else if (strcmp(key, "open-timeout") == 0) {
    if (nbdkit_parse_uint32_t("open-timeout", value, &params.open_timeout_ms) == -1) return -1;
  } else if (strcmp(key, "multicast") == 0) {
    params.multicast = value;
  } else {
    nbdkit_error("there is no parameter '%s'; nbdkit cepheus --help lists the parameters", key);
    return -1;
  }
  return 0;
}

static int config_complete(void) {
  if (params.volume != NULL && params.replicas != NULL) return 0;
  nbdkit_error(
      "volume=NAME and replicas=HOST:PORT,... are required; example: nbdkit cepheus volume=v "
      "replicas=h1:7800,h2:7800,h3:7800");
  return -1;
}

/* After the fork into the background: the library has a thread, and its NIC's memory does not
 * survive a fork. */
static int after_fork(void) {
  char error[512] = "";
  const int status = cepheus_volume_open(&params, &volume, error, sizeof error);
  if (status == 0) return 0;
  nbdkit_error("%s", error[0] != '\0' ? error : strerror(-status));
  return -1;
}

static void cleanup(void) {
  if (volume != NULL) cepheus_volume_close(volume);
  volume = NULL;
}

static void* open_connection(int readonly) {
  (void)readonly;
  return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t get_size(void* handle) {
  (void)handle;
  return (int64_t)cepheus_volume_size(volume);
}

static int block_size(void* handle, uint32_t* minimum, uint32_t* preferred, uint32_t* maximum) {
  (void)handle;
  const uint32_t block = cepheus_volume_block_size(volume);
  *minimum = block;
  *preferred = block < 4096 ? 4096 : block;
  *maximum = 0xFFFFFFFFu; /* longer ones are split here */
  return 0;
}

static int yes(void* handle) {
  (void)handle;
  return 1;
}

static int no(void* handle) {
  (void)handle;
  return 0;
}

static int can_fua(void* handle) {
  (void)handle;
  return NBDKIT_FUA_NATIVE;
}

/* One client request, until all its parts have ended. */
typedef struct {
  sem_t done;
  int error; /* of the last part that failed; written by the library's one thread */
} waiter_t;

static void on_done(void* arg, int error) {
  waiter_t* const waiter = arg;
  if (error != 0) waiter->error = error;
  sem_post(&waiter->done);
}

/* Names the lost bytes; once, since every request ends so from then on. */
static void report_loss(const char* what) {
  static atomic_flag is_reported = ATOMIC_FLAG_INIT;
  char status[4096];
  const int length = cepheus_volume_status(volume, status, sizeof status);
  if (length > 0 && !atomic_flag_test_and_set(&is_reported)) {
    nbdkit_error("%s: the replicas lost acknowledged data; the volume's status: %s", what, status);
  } else {
    nbdkit_error("%s: the replicas lost acknowledged data", what);
  }
}

/* Returns -1 and sets an error that NBD has a code for. */
static int failure(int error, const char* what) {
  switch (error) {
    case -ESTALE:
      nbdkit_error("%s: another program has taken the volume", what);
      nbdkit_set_error(ESHUTDOWN);
      break;
    case -ECANCELED:
      nbdkit_error("%s: the volume was closed", what);
      nbdkit_set_error(ESHUTDOWN);
      break;
    case -EIO:
      report_loss(what);
      nbdkit_set_error(EIO);
      break;
    case -EINVAL:
      nbdkit_error(
          "%s: not a multiple of the volume's block of %u bytes; start nbdkit with "
          "--filter=blocksize",
          what, cepheus_volume_block_size(volume));
      nbdkit_set_error(EINVAL);
      break;
    default:
      nbdkit_error("%s: %s", what, strerror(-error));
      nbdkit_set_error(-error);
  }
  return -1;
}

/* Waits for `parts`. `error`: of the part that was refused. 0, or -1 with an error. */
static int conclude(waiter_t* waiter, unsigned parts, int error, const char* what) {
  while (parts > 0) {
    if (sem_wait(&waiter->done) == 0) --parts;
  }
  sem_destroy(&waiter->done);
  if (error == 0) error = waiter->error;
  return error == 0 ? 0 : failure(error, what);
}

/* A read where `from` is NULL, else a write. */
static int transfer(void* to, const void* from, uint32_t count, uint64_t offset, unsigned flags) {
  const size_t most = cepheus_volume_max_request(volume);
  waiter_t waiter = {.error = 0};
  sem_init(&waiter.done, 0, 0);
  unsigned parts = 0;
  int error = 0;
  for (uint32_t at = 0; at < count; ++parts) {
    const size_t length = count - at < most ? count - at : most;
    error = from == NULL ? cepheus_volume_read(volume, (char*)to + at, length, offset + at, flags,
                                               on_done, &waiter)
                         : cepheus_volume_write(volume, (const char*)from + at, length, offset + at,
                                                flags, on_done, &waiter);
    if (error != 0) break;
    at += (uint32_t)length;
  }
  return conclude(&waiter, parts, error, from == NULL ? "read" : "write");
}

static int pread_volume(void* handle, void* buffer, uint32_t count, uint64_t offset,
                        uint32_t flags) {
  (void)handle, (void)flags;
  return transfer(buffer, NULL, count, offset, 0);
}

static int pwrite_volume(void* handle, const void* buffer, uint32_t count, uint64_t offset,
                         uint32_t flags) {
  (void)handle;
  return transfer(NULL, buffer, count, offset,
                  (flags & NBDKIT_FLAG_FUA) != 0 ? CEPHEUS_VOLUME_FUA : 0);
}

static int flush_volume(void* handle, uint32_t flags) {
  (void)handle, (void)flags;
  waiter_t waiter = {.error = 0};
  sem_init(&waiter.done, 0, 0);
  const int error = cepheus_volume_flush(volume, 0, on_done, &waiter);
  return conclude(&waiter, error == 0 ? 1 : 0, error, "flush");
}

static struct nbdkit_plugin plugin = {
    .name = "cepheus",
    .longname = "Cepheus",
    .version = CEPHEUS_VERSION,
    .description = "volumes replicated by multicast RDMA WRITE",
    .config = config,
    .config_complete = config_complete,
    .config_help = kHelp,
    .after_fork = after_fork,
    .cleanup = cleanup,
    .open = open_connection,
    .get_size = get_size,
    .block_size = block_size,
    .can_write = yes,
    .can_flush = yes,
    .is_rotational = no,
    .can_fua = can_fua,
    .can_multi_conn = yes, /* all connections see one volume, and a flush covers all writes */
    .pread = pread_volume,
    .pwrite = pwrite_volume,
    .flush = flush_volume,
};

NBDKIT_REGISTER_PLUGIN(plugin)
