/* libmcast: reliable multicast groups over public libibverbs (docs/protocol.md).
 *
 * A context is one device port. A group is ONE ordinary RC queue pair per member whose remote end
 * is virtual; a group carries one lane: EAGER (small messages into buffers that are always posted,
 * handed to a callback) or BULK (straight from the sender's buffer into buffers posted for exactly
 * this message). Any member may send, one after the other:
 *
 *     A member starts sending only after it has received every message that other members sent
 *     before, and all members agree on the order of senders (blocking MPI_Bcast gives this for
 *     free; docs/protocol.md, "Changing the source").
 *
 * Setting a group up, member by member:
 *
 *     every member    mcast_group_create(), mcast_group_member() names it
 *     application     brings the names to one member, the leader, by any means
 *     leader          mcast_group_lead()
 *     every member    mcast_progress(), until mcast_group_test() says MCAST_OK or an error
 *
 * All members learn the same outcome, if the leader lives.
 *
 * A group with one fixed sender, its leader, may be a *sender group* instead (MC-RDMA's multicast:
 * mcast_group_params_t::sender_group on all members): it needs no group address, switches keep
 * something of it only where its tree branches, and several paths share its load. Its data goes to at
 * most 16 receivers. The sender names it by a virtual QPN (mcast_group_params_t::virtual_qpn).
 *
 * A group that fails on one member fails on all: the leader ends it, and tells the others. Members
 * that wait for data ask the leader now and then whether the group still stands; if nobody answers
 * for some seconds, it has failed.
 *
 * Nothing blocks: calls start work, mcast_progress() does it, callbacks and _test() tell.
 * Thread-safe; callbacks run inside mcast_progress() on the caller's thread with no lock held, and
 * may call anything here but mcast_progress() and the destroy calls. Errors are values;
 * mcast_last_error() has the text of the calling thread's last one, which says what to do. No call
 * exits, prints, or throws.
 */
#ifndef MCAST_MCAST_H
#define MCAST_MCAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MCAST_API __attribute__((visibility("default")))
#define MCAST_VERSION_MAJOR 0
#define MCAST_VERSION_MINOR 1

typedef enum mcast_status {
  MCAST_OK = 0,
  MCAST_INPROGRESS = 1,
  MCAST_ERR_INVALID = -1,   /* wrong argument or state: a bug of the caller */
  MCAST_ERR_AGAIN = -2,     /* no room now: repeat after mcast_progress() */
  MCAST_ERR_NO_DEVICE = -3, /* no RDMA device that can serve: fall back */
  MCAST_ERR_NO_MEMORY = -4, /* memory, or the eager buffers' bound per process: fall back */
  MCAST_ERR_REJECTED = -5, /* a switch or host refused the registration, with a reason: fall back */
  MCAST_ERR_TIMED_OUT = -6, /* registration was not answered in time: fall back */
  /* The McstID belongs to another leader: set up again with fresh groups. Or another sender group of
   * the host has the virtual QPN: the same, with another one. */
  MCAST_ERR_ID_IN_USE = -7,
  MCAST_ERR_FABRIC =
      -8, /* the group broke in operation: fall back, set up again later with fresh groups */
  MCAST_ERR_CANCELED = -9, /* the group was destroyed, or unregistered by its leader */
} mcast_status_t;

MCAST_API const char* mcast_status_string(mcast_status_t status);
MCAST_API const char* mcast_last_error(void);
MCAST_API const char* mcast_version_string(void);

struct ibv_context;
struct ibv_mr;
struct ibv_pd;

typedef struct mcast_context* mcast_context_h;
typedef struct mcast_group* mcast_group_h;
typedef struct mcast_mem* mcast_mem_h;
typedef struct mcast_report* mcast_report_h;

/* ---- context ---- */

typedef struct mcast_context_params {
  size_t struct_size; /* sizeof(mcast_context_params_t), set by MCAST_CONTEXT_PARAMS_INIT */
  const char* device; /* verbs device name; NULL: of the active ports with a RoCE v2 IPv4
                       * GID the one nearest to the cores that the process may run on */
  int gid_index;      /* -1: the first RoCE v2 IPv4 GID */
  /* UDP port of registration, which the switches listen at; 0: 18516. This process takes a free one
   * for itself. */
  uint16_t mrp_port;
  /* Payload bytes a packet, 256..4096, the same on all members; 0: the port's active MTU. */
  uint32_t path_mtu;
  uint32_t register_timeout_ms; /* from REGISTER to the last CONFIRM; 0: 1000 */
  const char* mcst_pool;   /* CIDR that group identifiers are taken from; NULL: "198.18.0.0/15" */
  size_t max_eager_memory; /* bytes of eager buffers over all groups of the process; 0: 64 MiB */
  /* A group fails when no send completes for so long while some are outstanding and nobody who
   * holds them up answers, or when a member that waits for data gets no answer from the leader for
   * so long, but at least 5000; counted only while mcast_progress() is called. 0: 8000, which lets
   * the leader take out a member that died, so that the others' sends complete; a program that has
   * another way to send may rather want less. Never shorter than the device's time-out and retries
   * take (8600 on the kernel's Soft-RoCE, 540 on soft-roce). */
  uint32_t progress_timeout_ms;
  /* A registration ends earlier than register_timeout_ms if no CONFIRM comes for so long. A program
   * that has another way to send sets both: it gives a silent fabric up soon, and waits for a busy
   * one. 0: register_timeout_ms alone counts. A sender group's ends after the shorter time. */
  uint32_t register_silence_ms;
} mcast_context_params_t;
#define MCAST_CONTEXT_PARAMS_INIT \
  { sizeof(mcast_context_params_t), NULL, -1, 0, 0, 0, NULL, 0, 0, 0 }

typedef struct mcast_context_attr {
  char device[64];
  uint32_t ipv4; /* host byte order; the host's identity in groups */
  int gid_index;
  uint32_t path_mtu;
  size_t max_message; /* largest bulk message, bytes */
  int is_up;          /* the port is active now; one that is not never serves this context again */
  uint64_t registered_bytes; /* memory registered by all contexts of the process */
} mcast_context_attr_t;

/* Contexts are independent, also several of one device port: each has its own settings and groups,
 * and callbacks run on the thread that calls mcast_progress() of the group's own context. In the
 * child of a fork contexts and groups of the parent are of no use: calls refuse, destroying them
 * does nothing. The child may open contexts of its own. */
MCAST_API mcast_status_t mcast_context_create(const mcast_context_params_t* params,
                                              mcast_context_h* out);
/* Destroys remaining groups first. Waits at most 200 ms for the fabric to hear of it. Memory that is
 * still registered stays so until mcast_mem_deregister(). */
MCAST_API void mcast_context_destroy(mcast_context_h context);
MCAST_API mcast_status_t mcast_context_query(mcast_context_h context, mcast_context_attr_t* out);
/* Does what can be done now for all groups; returns the number of things done. Called in a loop:
 * unless a group is being set up, only every 64th call looks at what mcast_context_arm() lists. */
MCAST_API unsigned mcast_progress(mcast_context_h context);
/* The same, and this call looks at that: for a program that calls now and then, between sleeps. */
MCAST_API unsigned mcast_progress_all(mcast_context_h context);
/* For a program that would rather sleep: whatever completes on the context from now on makes `fd`
 * readable, until the next call, which takes that back. What completed before wakes nobody, so:
 *
 *     mcast_context_arm(context, &fd), mcast_progress(context), then poll() `fd` if nothing was done
 *
 * Registration, publications and the finding of failures do not wake it: sleep for at most 10 ms
 * while operations are outstanding or a group is being set up. The next mcast_progress() looks at
 * those too. The descriptor is the library's, the same one each time: neither read nor close it.
 * MCAST_ERR_AGAIN: another thread makes progress; MCAST_ERR_NO_DEVICE: the device can't, keep
 * polling. */
MCAST_API mcast_status_t mcast_context_arm(mcast_context_h context, int* fd);

/* The context's device port, for verbs of the application's own beside its groups, such as READs on
 * connections of its own. The handles stay the library's: make objects of them, and destroy those
 * before the context. <infiniband/verbs.h> says what they are. */
typedef struct mcast_verbs {
  struct ibv_context* context; /* its asynchronous events are read by the library */
  struct ibv_pd* pd;           /* which memory of mcast_mem_register() and its like is in, too */
  uint8_t port;
  /* Not 0: the NIC is code of this process (soft-roce), and its stores make pages of a mapped file
   * dirty as the program's own do. 0: the device stores by DMA, or the kernel for it: the kernel does
   * not write back a page that was changed so after it was written back once. */
  int stores_in_process;
} mcast_verbs_t;
MCAST_API mcast_status_t mcast_context_verbs(mcast_context_h context, mcast_verbs_t* out);

/* ---- groups ---- */

typedef enum mcast_lane { MCAST_LANE_EAGER = 0, MCAST_LANE_BULK = 1 } mcast_lane_t;

/* A member's name: what the leader must know of it. Plain bytes, to be sent as they are between
 * hosts of one fabric, and to nobody but the leader: the token in it tells the member who that is.
 */
typedef struct mcast_member {
  uint32_t ipv4;         /* network byte order, as all of it */
  uint32_t qpn;          /* queue pair */
  uint16_t control_port; /* UDP port that this process takes registration at */
  uint16_t reserved;     /* 0 */
  uint32_t token;        /* random, by group and member */
} mcast_member_t;

/* A message of an eager lane has arrived. Returning MCAST_OK gives the buffer back; returning
 * MCAST_INPROGRESS keeps it until mcast_recv_release(): kept buffers count against recv_depth, so
 * an application that does not consume slows the senders down and never fills memory.
 * MCAST_RECV_HEADROOM bytes before `data` are writable and the application's. */
#define MCAST_RECV_HEADROOM 64
typedef mcast_status_t (*mcast_recv_cb_t)(void* arg, void* data, size_t length, uint32_t imm);

/* What happens when a member is lost: its port is down, or it holds up the others and has not
 * answered for 5 s. */
typedef enum mcast_lost_member {
  /* The switch acknowledges in its place, and the others go on. Sends complete that it lacks. */
  MCAST_LOST_MEMBER_EVICTED = 0,
  /* The group fails on all members. No send completes before every member has the message. */
  MCAST_LOST_MEMBER_ENDS_GROUP = 1,
} mcast_lost_member_t;

/* Virtual QPNs that programs may choose for themselves. Those above them, up to 0xFFFFFE, are
 * cepheus-cmd's. */
#define MCAST_CHOSEN_QPN_FIRST 0xC00000u
#define MCAST_CHOSEN_QPN_LAST 0xDFFFFFu

typedef struct mcast_group_params {
  size_t struct_size;
  mcast_lane_t lane;
  size_t max_eager;        /* EAGER: largest message, bytes; 0: 8192 */
  unsigned recv_depth;     /* EAGER: posted buffers; BULK: receives that may be posted; 0: 64 */
  unsigned send_depth;     /* outstanding sends; 0: 64 */
  mcast_recv_cb_t recv_cb; /* EAGER; may be set later, see mcast_group_set_recv */
  void* recv_arg;
  /* BULK: not 0: regions lie at address 0 under a key of their number on every member, so that
   * switches have nothing to rewrite in a WRITE. The fabric's write_mode must be "same-key", and
   * the NIC let programs choose keys, as soft-roce does. The same on all members. */
  int same_key;
  /* BULK: not 0: WRITEs say anew where they go at each member (mcast_write_to), and there are no
   * regions. The fabric's write_mode must be "per-request". The same on all members. */
  int per_request;
  /* BULK: not 0: one fixed sender, the member that leads; others' sends are refused
   * (MCAST_ERR_INVALID). Members publish regions before they are named, the application brings those
   * along (mcast_group_regions, mcast_group_lead_regions), and they last as long as the group. The
   * fabric's sender_groups must be "everywhere" or "racks". Without same_key and per_request. The
   * same on all members. */
  int sender_group;
  /* Of sender groups; the leader's counts, others may leave it 0. No other sender group of the host
   * may have it at the same time, nor in the 10 s after its end. It comes from the host's
   * cepheus-cmd (<cepheus/connections.h>), or the program chooses it from MCAST_CHOSEN_QPN_FIRST to
   * _LAST, beginning at a random place if other programs of the host choose, too. If another group
   * has it, the registration ends in MCAST_ERR_ID_IN_USE: create fresh groups with another one. */
  uint32_t virtual_qpn;
  mcast_lost_member_t lost_member; /* the leader's counts */
} mcast_group_params_t;
#define MCAST_GROUP_PARAMS_INIT                                                      \
  {                                                                                  \
    sizeof(mcast_group_params_t), MCAST_LANE_EAGER, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, \
        MCAST_LOST_MEMBER_EVICTED                                                    \
  }

typedef enum mcast_group_state {
  MCAST_GROUP_WAITING,     /* created: answers a leader's REGISTER */
  MCAST_GROUP_REGISTERING, /* REGISTER sent (leader) or confirmed (member) */
  MCAST_GROUP_ACTIVE,
  MCAST_GROUP_FAILED,
} mcast_group_state_t;

/* What made a group fail. */
typedef enum mcast_cause {
  MCAST_CAUSE_NONE,         /* it did not */
  MCAST_CAUSE_REGISTRATION, /* refused, or not answered in time */
  MCAST_CAUSE_WORK,         /* a work request failed: retries exceeded, or a wrong length */
  MCAST_CAUSE_WATCHDOG,     /* no send completed, nor was a question answered, for too long */
  MCAST_CAUSE_DEVICE,       /* the device or its port reports that it is gone */
  MCAST_CAUSE_LEADER,       /* the leader unregistered the group, perhaps since another failed */
  MCAST_CAUSE_STOPPED,      /* mcast_group_stop() */
} mcast_cause_t;

typedef struct mcast_group_attr {
  mcast_group_state_t state;
  mcast_lane_t lane;
  mcast_status_t status; /* why it failed */
  mcast_cause_t cause;
  char reason[256]; /* ... in words, naming who was missing or who refused */
  uint32_t id;      /* process-local number of the group, see mcast_group_by_id */
  uint32_t
      mcst_id; /* host byte order, of sender groups the sender's address; 0 before registration */
  uint16_t epoch;
  uint32_t members; /* leader: number of members, less those it gave up; others: 0 */
  int is_leader;
  size_t max_message; /* bytes: max_eager, or the device's largest; 1 GiB in host-sync at MTU 256 */
  uint64_t messages_sent, bytes_sent, messages_received, bytes_received;
  unsigned sends_outstanding; /* not yet acknowledged by every member */
  unsigned recvs_posted;      /* 0 once a failed group has handed over all that had arrived */
} mcast_group_attr_t;

MCAST_API mcast_status_t mcast_group_create(mcast_context_h context,
                                            const mcast_group_params_t* params, mcast_group_h* out);
/* Sets the eager lane's callback; before the group is registered. */
MCAST_API mcast_status_t mcast_group_set_recv(mcast_group_h group, mcast_recv_cb_t recv_cb,
                                              void* recv_arg);
MCAST_API mcast_status_t mcast_group_member(mcast_group_h group, mcast_member_t* out);
/* The caller becomes the leader; `members` names all members, the caller included, each once. Hosts
 * must differ. */
MCAST_API mcast_status_t mcast_group_lead(mcast_group_h group, const mcast_member_t* members,
                                          size_t count);
/* MCAST_INPROGRESS until the outcome is known; then MCAST_OK (data may flow) or why not. Members
 * learn it one after the other: messages of one that knows already may arrive before that. Bulk
 * receives may be posted from the group's creation on. */
MCAST_API mcast_status_t mcast_group_test(mcast_group_h group);
MCAST_API mcast_status_t mcast_group_query(mcast_group_h group, mcast_group_attr_t* out);
/* The group with mcast_group_attr_t::id, for callers that pass groups through configuration
 * strings; NULL if none. */
MCAST_API mcast_group_h mcast_group_by_id(uint32_t id);
MCAST_API mcast_context_h mcast_group_context(mcast_group_h group);
/* The leader's call unregisters the group in the fabric. Operations not yet complete are called
 * back with MCAST_ERR_CANCELED. Call it when no member needs the group any more. */
MCAST_API void mcast_group_destroy(mcast_group_h group);

/* Sends of this member that not every member has acknowledged yet, eager and bulk. */
MCAST_API unsigned mcast_group_outstanding(mcast_group_h group);

/* Ends the group, as a failure of this member would: its queue pair stops, bulk operations end with
 * MCAST_ERR_FABRIC, what had arrived before is still handed over; the other members' groups fail as
 * soon as they hear of it. `reason` is what mcast_group_test() says here from then on. Does nothing
 * to a group that failed already. */
MCAST_API mcast_status_t mcast_group_stop(mcast_group_h group, const char* reason);

/* Off (0): this member's sends may wait as long as they like, for members that have not posted yet;
 * neither the watchdog nor the search for members that lag counts that time. On: as from the
 * group's creation, and counting starts anew. */
MCAST_API mcast_status_t mcast_group_set_watchdog(mcast_group_h group, int on);

/* EAGER: what a failed group sent and perhaps not every member received, oldest first: `index` 0,
 * 1, ... until MCAST_ERR_INVALID. The data stays until the group is destroyed. */
MCAST_API mcast_status_t mcast_group_unacknowledged(mcast_group_h group, unsigned index,
                                                    const void** data, size_t* length,
                                                    uint32_t* imm);

/* ---- data ---- */

/* Sends up to max_eager bytes to all other members; they are copied before the call returns. `imm`
 * travels along. MCAST_OK, or MCAST_ERR_AGAIN while send_depth messages are unacknowledged. */
MCAST_API mcast_status_t mcast_send_eager(mcast_group_h group, const void* data, size_t length,
                                          uint32_t imm);
/* The same without a contiguous source: pack(dest, arg) writes at most max_eager bytes and returns
 * their number. Unlike other callbacks it runs inside the call and may call nothing here. */
typedef size_t (*mcast_pack_cb_t)(void* dest, void* arg);
MCAST_API mcast_status_t mcast_send_eager_pack(mcast_group_h group, mcast_pack_cb_t pack, void* arg,
                                               uint32_t imm, size_t* length_out);

/* Gives back a buffer that a recv_cb kept; `data` as the callback saw it. */
MCAST_API void mcast_recv_release(mcast_group_h group, void* data);

/* Memory for bulk operations: registered with the device; dereg when no operation uses it. */
MCAST_API mcast_status_t mcast_mem_register(mcast_context_h context, void* address, size_t length,
                                            mcast_mem_h* out);
MCAST_API void mcast_mem_deregister(mcast_mem_h mem);
/* What it is to verbs, with its keys: of the library until it is deregistered. Null for null. */
MCAST_API struct ibv_mr* mcast_mem_verbs(mcast_mem_h mem);

/* A bulk operation in flight: the caller's memory, untouched by the caller until done() ran,
 * exactly once. */
typedef struct mcast_op mcast_op_t;
struct mcast_op {
  void (*done)(mcast_op_t* op, mcast_status_t status, size_t length, uint32_t imm);
  void* user;
};

/* Sends to all other members; done() runs when every one has acknowledged. `mem` covers the buffer;
 * NULL: registered for the time of the operation. Returns MCAST_INPROGRESS, MCAST_ERR_AGAIN, or an
 * error (then done() does not run). */
MCAST_API mcast_status_t mcast_send(mcast_group_h group, const void* data, size_t length,
                                    mcast_mem_h mem, uint32_t imm, mcast_op_t* op);
/* Posts a buffer for the next bulk message not yet covered by a posted buffer. A longer message is
 * an error of the group (MCAST_ERR_FABRIC). The sender should know that all have posted: else its
 * packets wait for a retry timer. */
MCAST_API mcast_status_t mcast_recv(mcast_group_h group, void* buffer, size_t length,
                                    mcast_mem_h mem, mcast_op_t* op);

/* ---- WRITE: straight into memory that all members have set aside (bulk lanes) ---- */

/* Members publish memory under numbers that they agree on, each its own and wherever it lies; a
 * member that writes names a number and an offset, and each member's switch makes of it that
 * member's address and key. WRITEs and sends may alternate, under the one rule for senders above.
 *
 * Registers `address` to `address + length` with the device, and makes it region `region` of this
 * member: others may write to it. All members that the group has are written to: each must have
 * published that number, with enough room. At most 50 regions a member and group.
 *
 * With same_key a region's number is the device's, not the group's: MCAST_ERR_INVALID if any group
 * of this process has it, and nobody but the NIC checks where a WRITE ends.
 *
 * What was published before the group became active is in force on all members when it does.
 * Later: mcast_region_test() says when it is, and it is the application's to tell the writer. */
MCAST_API mcast_status_t mcast_region_publish(mcast_group_h group, uint16_t region, void* address,
                                              size_t length);
/* The same for `length` bytes from `offset` on of `mem`, which others may write to and the caller
 * registered on the group's context: nothing is registered, so that large memory is published in
 * group after group at once. Any number of regions may lie in `mem`, also over each other. It stays
 * the caller's: deregister it after the group was destroyed, or the region revoked and that in force.
 * MCAST_ERR_INVALID: `mem` has no such part, is closed to others, or another context's; or the group
 * has same_key. */
MCAST_API mcast_status_t mcast_region_publish_part(mcast_group_h group, uint16_t region,
                                                   mcast_mem_h mem, size_t offset, size_t length);
/* From now on nothing new is written there, once mcast_region_test() says MCAST_OK: the memory is
 * the caller's again. Nobody may be writing to it: a WRITE that is under way breaks the group, and
 * one that comes too late is refused. Regions of a group end with it. */
MCAST_API mcast_status_t mcast_region_revoke(mcast_group_h group, uint16_t region);
/* MCAST_OK: this member's switch has all that it published and revoked. MCAST_INPROGRESS: not yet
 * all, or the group is not being registered yet. Else how the group failed. */
MCAST_API mcast_status_t mcast_region_test(mcast_group_h group);

/* Writes to region `region` of all other members, from `offset` on; the caller's own is its own
 * matter. done() runs when every one has it in memory. Members are not told, unless `imm` points to
 * a word for them: then a receive of each completes, with `length` and the word, its buffer
 * untouched (one of no bytes will do).
 *
 * A WRITE past a region's end, or to a member that has no such region, is refused as a whole at
 * that member's switch: nothing is written behind it, perhaps it is elsewhere. The group fails on
 * all members (MCAST_ERR_FABRIC): the leader's reason names the member, and so does `cepheusctl
 * groups`. Returns as mcast_send(). */
MCAST_API mcast_status_t mcast_write(mcast_group_h group, const void* data, size_t length,
                                     mcast_mem_h mem, uint16_t region, uint64_t offset,
                                     const uint32_t* imm, mcast_op_t* op);

/* ---- ... or at addresses that each WRITE names anew (groups with per_request) ---- */

/* Memory as of mcast_mem_register() that others may write to as well, wherever a WRITE names it. */
MCAST_API mcast_status_t mcast_mem_register_writable(mcast_context_h context, void* address,
                                                     size_t length, mcast_mem_h* out);

/* Others may read it, too, on connections of the application's own (mcast_context_verbs). */
MCAST_API mcast_status_t mcast_mem_register_shared(mcast_context_h context, void* address,
                                                   size_t length, mcast_mem_h* out);

/* `length` bytes of a member's memory. Plain bytes, to be brought to whoever writes there. */
typedef struct mcast_target {
  uint32_t ipv4; /* network byte order, as all of it */
  uint32_t rkey;
  uint64_t address;
  uint64_t length;
} mcast_target_t;
/* ... of `mem`, which must be writable by others. */
MCAST_API mcast_status_t mcast_mem_target(mcast_mem_h mem, void* address, size_t length,
                                          mcast_target_t* out);
/* A part of a target. */
MCAST_API mcast_status_t mcast_target_part(const mcast_target_t* target, uint64_t offset,
                                           uint64_t length, mcast_target_t* out);

/* Writes to `targets` of all other members at once, one of each and at least `length` bytes of it;
 * done() runs when every one has it in memory. All that the group has must be named, at most 170 at
 * a path MTU of 4096 and 42 at 1024; who is no member, as one that was taken out, is passed over.
 * `imm` as in mcast_write(). At most 64 are outstanding, then MCAST_ERR_AGAIN.
 *
 * A WRITE longer than what a target has, or to a member that is not named, ends the group as one
 * beyond a region does. Before memory is deregistered no WRITE may be under way to it. */
MCAST_API mcast_status_t mcast_write_to(mcast_group_h group, const void* data, size_t length,
                                        mcast_mem_h mem, const mcast_target_t* targets,
                                        size_t count, const uint32_t* imm, mcast_op_t* op);

/* ---- regions of sender groups, which travel with the members' names ---- */

/* A published region of one member. Plain bytes, to be sent as they are, to the leader. */
typedef struct mcast_region {
  mcast_target_t target;
  uint16_t number; /* network byte order */
  uint16_t reserved[3];
} mcast_region_t;
/* What this member has published, for the leader: `*count` is the room in `out`, then how many there
 * are. MCAST_ERR_INVALID: too little room, or no sender group. */
MCAST_API mcast_status_t mcast_group_regions(mcast_group_h group, mcast_region_t* out,
                                             size_t* count);
/* mcast_group_lead() of a sender group whose members have published `regions`, at most 40 together;
 * in any order, the caller's own, which nobody writes to, among them or not. */
MCAST_API mcast_status_t mcast_group_lead_regions(mcast_group_h group,
                                                  const mcast_member_t* members, size_t count,
                                                  const mcast_region_t* regions,
                                                  size_t region_count);

/* ---- reports ---- */

/* Counts of one communicator's collective calls by the path they took and why, in a file that
 * `cepheusctl explain` reads. `name` is the communicator's, at most 56 bytes of it; `rank` of `ranks`
 * is the caller's place. MCAST_ERR_NO_MEMORY if there is no place for the file: go on without. */
MCAST_API mcast_status_t mcast_report_open(const char* name, unsigned rank, unsigned ranks,
                                           mcast_report_h* out);
/* Counts one call. `path` ("eager lane") and `reason` ("multicast") are short texts, compared with
 * the last ones and copied if they are new: no system call, no lock. One thread at a time for each
 * report. Null: nothing happens. */
MCAST_API void mcast_report_call(mcast_report_h report, const char* path, const char* reason);
/* At the beginning of a call: 0, or, while `cepheusctl record` runs, the time for
 * mcast_report_timed_call(). Cheap where nobody records. */
MCAST_API uint64_t mcast_report_begin(void);
/* mcast_report_call(), and if begin_ns is not 0 the call with its times is kept for the recorder: it
 * began then, ends now, and moved so many bytes from rank `root`. */
MCAST_API void mcast_report_timed_call(mcast_report_h report, const char* path, const char* reason,
                                       uint64_t begin_ns, uint64_t bytes, unsigned root);
/* The communicator is gone; its counts are added to those of others that are. */
MCAST_API void mcast_report_close(mcast_report_h report);

#ifdef __cplusplus
}
#endif
#endif
