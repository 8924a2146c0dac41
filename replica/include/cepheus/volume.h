/* libcepheus-volume: the writer of a replicated volume (docs/replica.md).
 *
 * `cepheus-replica serve` keeps the volume's replicas on several hosts. One program at a time has
 * it open. A write goes to all replicas by one multicast WRITE, and is done when every replica in
 * sync has it. A read goes to one of them. Opening the volume takes it from the program before:
 * that program's requests end with -ESTALE from then on.
 *
 *     cepheus_volume_open()                                  the volume is this program's
 *     cepheus_volume_read(), _write(), _flush(), any thread  done() is called once for each
 *     cepheus_volume_close()
 *
 * A thread of the library does the work and calls done(). It sleeps without work. A dead replica
 * delays requests for about a second. While no replica in sync can be reached, requests wait
 * without limit; when one is back, they are repeated in the same order.
 *
 * Data is copied through memory that is registered with the NIC once: registering a caller's buffer
 * for each request would cost more than copying it.
 *
 * Errors are 0 or negative errno values. No call exits, prints or throws. After a fork the child
 * may use no volume.
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
  const char* volume;   /* the name under which the replicas serve it */
  const char* replicas; /* "host:port,host:port,...": all of the volume, always in the same order */
  const char* device;   /* verbs device; NULL: libmcast's choice */
  unsigned depth;       /* requests at once; 0: 64, at most 1024 */
  uint64_t copy_rate;   /* bytes a second for replicas that return; 0: unlimited */
  /* time limit of cepheus_volume_open(); 0: 10000 */
  uint32_t open_timeout_ms;
  /* Path of writes to the replicas: "cepheus", or "mcrdma", with less group state in switches (the
   * fabric's sender_groups must not be "off"); NULL: "cepheus" */
  const char* multicast;
} cepheus_volume_params_t;
#define CEPHEUS_VOLUME_PARAMS_INIT \
  { sizeof(cepheus_volume_params_t), NULL, NULL, NULL, 0, 0, 0, NULL }

/* Takes the volume, makes replicas equal where they may differ, and returns when the volume can be
 * used. A fabric's key is read from $CEPHEUS_KEY_FILE, as libmcast does.
 *
 * -EINVAL: the parameters; -ETIMEDOUT: needed replicas are missing; -ENODEV: no RDMA device;
 * -EACCES: a replica refuses (another key, volume, or order of replicas); -EPROTO: replicas differ
 * in size or block; -ENOMEM; -EIO: all replicas with the data have new disks. `error` (NULL: none)
 * gets a sentence with the replica and the remedy. */
CEPHEUS_VOLUME_API int cepheus_volume_open(const cepheus_volume_params_t* params,
                                           cepheus_volume_h* out, char* error, size_t error_size);

CEPHEUS_VOLUME_API uint64_t cepheus_volume_size(cepheus_volume_h volume);       /* bytes */
CEPHEUS_VOLUME_API uint32_t cepheus_volume_block_size(cepheus_volume_h volume); /* bytes */
/* Bytes of the largest request; 4 MiB. */
CEPHEUS_VOLUME_API size_t cepheus_volume_max_request(cepheus_volume_h volume);

/* With cepheus_volume_write(): done when the data is on all disks. */
#define CEPHEUS_VOLUME_FUA 1u
/* -EAGAIN instead of a wait for space. */
#define CEPHEUS_VOLUME_NOWAIT 2u

/* Called on the library's thread. 0: done. -ESTALE: another program has the volume; a write may or
 * may not have effect. -ECANCELED: the volume was closed, likewise. -EIO: all replicas in sync lost
 * their memory, and with it data that was acknowledged and not flushed; or all got new disks, and
 * all data is lost. Every request ends so from then on, and cepheus_volume_status() names the bytes
 * and what to do. After a loss of memory, closed and opened again, the volume has all flushed data,
 * as a disk after a power failure. done() may start requests, which never wait there, and must not
 * block. */
typedef void (*cepheus_volume_done_t)(void* arg, int error);

/* 0: accepted; done() will be called, perhaps before this returns. Otherwise it was refused:
 * -EINVAL: offset or length are not multiples of the block, or 0, beyond the end, or more than a
 * request may have; -ESTALE; -EIO; -EAGAIN: there is no space and the flags forbid a wait. With
 * `depth` requests in flight it waits for space (in done(): -EAGAIN).
 *
 * `buffer` belongs to the caller again when done() is called; a write's, when this returns. */
CEPHEUS_VOLUME_API int cepheus_volume_read(cepheus_volume_h volume, void* buffer, size_t length,
                                           uint64_t offset, unsigned flags,
                                           cepheus_volume_done_t done, void* arg);
CEPHEUS_VOLUME_API int cepheus_volume_write(cepheus_volume_h volume, const void* buffer,
                                            size_t length, uint64_t offset, unsigned flags,
                                            cepheus_volume_done_t done, void* arg);
/* Done when all writes that were done before it began are on all disks. */
CEPHEUS_VOLUME_API int cepheus_volume_flush(cepheus_volume_h volume, unsigned flags,
                                            cepheus_volume_done_t done, void* arg);

/* JSON, ended with a zero byte: {"phase", "failure", "lost": [{"offset", "length"}], "epoch",
 * "in_sync", "marked_chunks", "requests", "replicas": [{"address", "state", "lacking_chunks"}],
 * "groups", "copied_bytes", ...}. "failure" and "lost" are empty until the volume fails. Returns
 * the text's length without the zero, as snprintf(). Not from done(). */
CEPHEUS_VOLUME_API int cepheus_volume_status(cepheus_volume_h volume, char* json, size_t size);

/* Requests in flight end with -ECANCELED first; wait for their done() to avoid that. Not from
 * done(). */
CEPHEUS_VOLUME_API void cepheus_volume_close(cepheus_volume_h volume);

#ifdef __cplusplus
}
#endif
#endif
