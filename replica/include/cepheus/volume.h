/* libcepheus-volume: the writer of a replicated volume (docs/replica.md).
 *
 * A volume is kept by `cepheus-replica serve` on several hosts. One program at a time has it open: a write goes to all
 * replicas by one multicast WRITE and is done when every replica in sync has it, a read asks one of them. Opening the
 * volume takes it from whoever had it before: that one's requests end with -ESTALE from then on.
 *
 *     cepheus_volume_open()                                  the volume is this program's
 *     cepheus_volume_read(), _write(), _flush(), any thread  done() is called once for each that was taken
 *     cepheus_volume_close()
 *
 * A thread of the library's own does the work and calls done(). It sleeps while there is nothing to do. A replica that
 * dies holds requests up for about a second; while no replica in sync can be reached they wait, as long as that takes,
 * and are repeated in the same order when one is back.
 *
 * Data is copied through memory that is registered with the NIC once: to register a caller's buffer for each request
 * would cost more than to copy it.
 *
 * Errors are 0 or negative errno values. No call exits, prints or throws. After a fork the child may use no volume.
 */
#ifndef CEPHEUS_VOLUME_H
#define CEPHEUS_VOLUME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CEPHEUS_VOLUME_API __attribute__((visibility("default")))

typedef struct cepheus_volume* cepheus_volume_h;

typedef struct cepheus_volume_params {
  size_t struct_size;   /* set by CEPHEUS_VOLUME_PARAMS_INIT */
  const char* volume;   /* the name that the replicas serve it by */
  const char* replicas; /* "host:port,host:port,...": all of the volume, always in the same order */
  const char* device;   /* verbs device; NULL: as libmcast chooses */
  unsigned depth;       /* requests at once; 0: 64, at most 1024 */
  uint64_t copy_rate;   /* bytes a second for replicas that return; 0: as fast as it goes */
  /* cepheus_volume_open() gives up after so long; 0: 10000 */
  uint32_t open_timeout_ms;
  /* How writes reach the replicas: "cepheus", or "mcrdma", whose switches keep less of a group (the fabric's
   * sender_groups must not be "off"); NULL: "cepheus" */
  const char* multicast;
} cepheus_volume_params_t;
#define CEPHEUS_VOLUME_PARAMS_INIT \
  { sizeof(cepheus_volume_params_t), NULL, NULL, NULL, 0, 0, 0, NULL }

/* Takes the volume, makes its replicas alike as far as they may differ, and returns when it can be used. A fabric's key
 * is read from $CEPHEUS_KEY_FILE, as libmcast does.
 *
 * -EINVAL: the parameters; -ETIMEDOUT: replicas are missing that are needed; -ENODEV: no RDMA device; -EACCES: a replica
 * refuses (another key, volume, or order of replicas); -EPROTO: replicas that differ in size or block; -ENOMEM; -EIO: all
 * replicas that had the data have new disks. `error`
 * (NULL: none) has a sentence that names who and what to do. */
CEPHEUS_VOLUME_API int cepheus_volume_open(const cepheus_volume_params_t* params,
                                           cepheus_volume_h* out, char* error, size_t error_size);

CEPHEUS_VOLUME_API uint64_t cepheus_volume_size(cepheus_volume_h volume);       /* bytes */
CEPHEUS_VOLUME_API uint32_t cepheus_volume_block_size(cepheus_volume_h volume); /* bytes */
/* Bytes of the largest request; 4 MiB. */
CEPHEUS_VOLUME_API size_t cepheus_volume_max_request(cepheus_volume_h volume);

/* With cepheus_volume_write(): done when it is on all disks. */
#define CEPHEUS_VOLUME_FUA 1u
/* -EAGAIN where the call would wait for room. */
#define CEPHEUS_VOLUME_NOWAIT 2u

/* Called on the library's thread. 0; -ESTALE: another program has the volume, nothing is known of a write;
 * -ECANCELED: the volume was closed, likewise. -EIO: all replicas in sync lost their memory, and with it data that was
 * acknowledged and not flushed; every request ends so from then on, and cepheus_volume_status() names the bytes. Closed and
 * opened again, the volume has what was flushed, as a disk after a loss of power. It may start requests, which never wait there, and must not block. */
typedef void (*cepheus_volume_done_t)(void* arg, int error);

/* 0: taken, done() will be called, perhaps before this returns. Else it was not: -EINVAL: offset or length are no
 * multiples of the block, or 0, beyond the end, or more than a request may have; -ESTALE; -EIO; -EAGAIN: there is no room and
 * the call was not to wait. While `depth` requests are under way it waits for room (in done(): -EAGAIN).
 *
 * `buffer` is the caller's again when done() is called; of a write, when this returns. */
CEPHEUS_VOLUME_API int cepheus_volume_read(cepheus_volume_h volume, void* buffer, size_t length,
                                           uint64_t offset, unsigned flags,
                                           cepheus_volume_done_t done, void* arg);
CEPHEUS_VOLUME_API int cepheus_volume_write(cepheus_volume_h volume, const void* buffer,
                                            size_t length, uint64_t offset, unsigned flags,
                                            cepheus_volume_done_t done, void* arg);
/* Done when all writes that were done before it began are on all disks. */
CEPHEUS_VOLUME_API int cepheus_volume_flush(cepheus_volume_h volume, unsigned flags,
                                            cepheus_volume_done_t done, void* arg);

/* JSON, ended with a zero byte: {"phase", "failure", "lost": [{"offset", "length"}], "epoch", "in_sync",
 * "marked_chunks", "requests", "replicas": [{"address", "state", "lacking_chunks"}], "groups", "copied_bytes", ...}.
 * "failure" and "lost" are empty until the volume fails. The bytes that it has without the zero, as snprintf(). Not from
 * done(). */
CEPHEUS_VOLUME_API int cepheus_volume_status(cepheus_volume_h volume, char* json, size_t size);

/* What is under way ends with -ECANCELED first: wait for done() before if that matters. Not from done(). */
CEPHEUS_VOLUME_API void cepheus_volume_close(cepheus_volume_h volume);

#ifdef __cplusplus
}
#endif
#endif
