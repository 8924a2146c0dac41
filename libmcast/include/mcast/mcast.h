/* libmcast: reliable multicast groups over public libibverbs (docs/protocol.md).
 *
 * A context is one device port. A group has one RC queue pair per member; the remote end of each is
 * virtual. A group has one lane: EAGER takes small messages, copied into buffers that are always
 * posted and handed to a callback; BULK sends from the user's buffer into posted buffers; REDUCTION
 * combines contributions of all members.
 *
 * Set-up: every member calls mcast_group_create() and mcast_group_member(). The application brings
 * the names to one member, the leader, which calls mcast_group_lead(). Every member then calls
 * mcast_progress() until mcast_group_test() returns MCAST_OK or an error, the same on all members.
 *
 * Order: a member MUST NOT send before it has received every message that others sent before, and
 * all members agree on the order of senders (docs/protocol.md, "Changing the source").
 *
 * Failure: a group that fails on one member fails on all, because the leader ends it.
 *
 * Threads: every call may come from any thread; one thread at a time progresses a context. No call
 * blocks, exits, prints or throws, unless it says so. Callbacks run inside mcast_progress() with no
 * lock held. They may call anything but mcast_progress() and the destroy calls.
 *
 * Structures that may grow have `struct_size` in front. Initialise them with their _INIT macro,
 * whether the library reads or fills them. The library touches no byte beyond struct_size, takes
 * defaults for fields that the caller lacks, and refuses a size below the first version's
 * (MCAST_ERR_INVALID). The other structures never change.
 *
 * mcast_last_error() has the text of the calling thread's last error.
 *
 * More: <mcast/query.h> attributes, <mcast/wait.h> sleeping, <mcast/recovery.h> failed groups,
 * <mcast/reduce.h> reductions, <mcast/write.h> WRITE into members' memory, <mcast/senders.h> groups
 * with one fixed sender, <mcast/verbs.h> verbs beside groups.
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
  MCAST_ERR_AGAIN = -2,     /* a queue or its buffers are full: repeat after mcast_progress() */
  MCAST_ERR_NO_DEVICE = -3, /* no RDMA device that can serve: fall back */
  MCAST_ERR_NO_MEMORY = -4, /* memory, or the context's max_eager_memory: fall back */
  MCAST_ERR_REJECTED = -5,  /* a switch or host refused the registration: fall back */
  MCAST_ERR_TIMED_OUT = -6, /* registration was not answered in time: fall back */
  /* Another leader has the group address, or another sender group of the host has the virtual QPN:
   * retry with fresh groups, the latter with another virtual QPN. */
  MCAST_ERR_ID_IN_USE = -7,
  MCAST_ERR_FABRIC = -8,   /* the group failed in operation: fall back, retry with fresh groups */
  MCAST_ERR_CANCELED = -9, /* the group was destroyed, or unregistered by its leader */
} mcast_status_t;

MCAST_API const char* mcast_status_string(mcast_status_t status);
MCAST_API const char* mcast_last_error(void);
MCAST_API const char* mcast_version_string(void);

typedef struct mcast_context* mcast_context_h;
typedef struct mcast_group* mcast_group_h;
typedef struct mcast_mem* mcast_mem_h;

/* ---- context ---- */

typedef struct mcast_context_params {
  size_t struct_size;
  /* Verbs device name; NULL: of the usable ones on the route to groups, the nearest to the cores of
   * the process. */
  const char* device;
  int gid_index;     /* -1: the RoCE v2 IPv4 GID on the route to groups */
  uint16_t mrp_port; /* UDP port that switches take registration at; 0: 18516 */
  uint32_t path_mtu; /* most payload bytes of a packet, 256..4096; 0: the port's. Groups take less
                        where a member or a switch on the way does */
  uint32_t register_timeout_ms; /* from REGISTER to the last CONFIRM; 0: 1000 */
  const char* mcst_pool;        /* CIDR of group addresses; NULL: "198.18.0.0/15" */
  const char* key_file;         /* the fabric's key; NULL: $CEPHEUS_KEY_FILE, if set */
  /* Bytes of eager buffers, and of the packets that reduction groups keep, over all groups of the
   * context; 0: 64 MiB */
  size_t max_eager_memory;
  /* A group fails if no send completes for this time and no lagging member is known to be alive, or
   * if a waiting member gets no answer from the leader for this time (5000 at least). Only time
   * within mcast_progress() counts. 0: 8000, or 11300 with NICs that repeat late, in which the
   * leader evicts a dead member first. The device's time-out and retries are the lower bound (8600
   * with rdma_rxe, 570 with the emulated NIC, 4600 with hardware). */
  uint32_t progress_timeout_ms;
  /* Registration also ends if no CONFIRM comes for this time, so that a silent fabric is given up
   * sooner than a busy one. 0: register_timeout_ms alone counts. */
  uint32_t register_silence_ms;
  /* Marks of the groups' packets, by which networks choose queues. Registration has them too. */
  uint32_t traffic_class; /* IPv4 TOS, 0..255; UCX's default is 106 as well */
  uint32_t service_level; /* priority of a VLAN tag, 0..7 */
  uint32_t flow_label;    /* 0..0xFFFFF; NICs derive the UDP source port from it; 0: none */
  /* The longest time that a link may be down without ending groups, up to 30000: the NIC's time-out
   * and retries take as long, and a dead member is noticed later. 0: 2000 */
  uint32_t link_outage_ms;
} mcast_context_params_t;
#define MCAST_CONTEXT_PARAMS_INIT \
  { sizeof(mcast_context_params_t), NULL, -1, 0, 0, 0, NULL, NULL, 0, 0, 0, 106, 0, 0, 0 }

/* Contexts are independent, also several of one port: each has its own settings, groups and
 * progressing thread. The child of a fork may open its own; calls on the parent's are refused there
 * (MCAST_ERR_INVALID), and destroying those does nothing. `params` NULL: all defaults. */
MCAST_API mcast_status_t mcast_context_create(const mcast_context_params_t* params,
                                              mcast_context_h* out);
/* Destroys remaining groups, then blocks for at most 200 ms until the fabric knows. Registered
 * memory stays registered until mcast_mem_deregister(). */
MCAST_API void mcast_context_destroy(mcast_context_h context);
/* Advances all groups, and returns the number of completions and control events. Every 64th call
 * also does control work: registration, publications, failure detection (during set-up: each call).
 */
MCAST_API unsigned mcast_progress(mcast_context_h context);

/* ---- groups ---- */

typedef enum mcast_lane {
  MCAST_LANE_EAGER = 0,
  MCAST_LANE_BULK = 1,
  MCAST_LANE_REDUCTION = 2, /* <mcast/reduce.h> */
} mcast_lane_t;

/* A member's name, in network byte order: send it unchanged to the leader only. */
typedef struct mcast_member {
  uint32_t ipv4;
  uint32_t qpn;
  uint16_t control_port; /* UDP port that this process takes registration at */
  uint16_t reserved;     /* 0 */
  uint32_t token;        /* random: proves to the member that a message is its leader's */
} mcast_member_t;

/* An eager message has arrived. MCAST_OK gives the buffer back; MCAST_INPROGRESS keeps it until
 * mcast_recv_release(). Kept buffers count against recv_depth and so slow senders down. The
 * MCAST_RECV_HEADROOM bytes before `data` are the application's to write. */
#define MCAST_RECV_HEADROOM 64
typedef mcast_status_t (*mcast_recv_cb_t)(void* arg, void* data, size_t length, uint32_t imm);

/* A member is lost if its port is down, or if it lags and has not answered for 5 s
 * (hardware: 8.3 s). */
typedef enum mcast_lost_member {
  MCAST_LOST_MEMBER_EVICTED = 0,    /* the switch acknowledges in its place; the others go on */
  MCAST_LOST_MEMBER_ENDS_GROUP = 1, /* no evictions: the group fails, no send completes falsely */
} mcast_lost_member_t;

typedef struct mcast_group_params {
  size_t struct_size;
  mcast_lane_t lane;
  size_t max_eager;        /* EAGER: largest message, bytes; 0: 8192 */
  unsigned recv_depth;     /* EAGER: posted buffers; BULK: receives that may be posted; 0: 64 */
  unsigned send_depth;     /* EAGER, BULK: outstanding sends; 0: 64 */
  mcast_recv_cb_t recv_cb; /* EAGER; see also mcast_group_set_recv() */
  void* recv_arg;
  int same_key;                    /* BULK, alike on all members: <mcast/write.h> */
  int per_request;                 /* BULK, alike on all members: <mcast/write.h> */
  int sender_group;                /* BULK, alike on all members: <mcast/senders.h> */
  uint32_t virtual_qpn;            /* of the leader of a sender group: <mcast/senders.h> */
  mcast_lost_member_t lost_member; /* the leader's counts */
  /* REDUCTION, alike on all members: packets that a member may have under way. A power of two from
   * 8 to 256; 0: 64. A member keeps twice as many of its path MTU, within max_eager_memory, and so
   * does each switch on the way, within its reduction_memory. */
  unsigned reduction_window;
  /* REDUCTION, alike on all members: the switches add and multiply floating-point numbers, too. Each
   * keeps reduction_window more packets for every two of its ports in the group behind the first
   * two: <mcast/reduce.h>. */
  int floating_sums;
} mcast_group_params_t;
#define MCAST_GROUP_PARAMS_INIT                                                      \
  {                                                                                  \
    sizeof(mcast_group_params_t), MCAST_LANE_EAGER, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, \
        MCAST_LOST_MEMBER_EVICTED, 0, 0                                              \
  }

MCAST_API mcast_status_t mcast_group_create(mcast_context_h context,
                                            const mcast_group_params_t* params, mcast_group_h* out);
/* Sets the eager lane's callback: without one a member takes part in no registration. Once it is
 * registered the callback may be replaced, not from a callback; then the call blocks while another
 * thread is inside mcast_progress(). */
MCAST_API mcast_status_t mcast_group_set_recv(mcast_group_h group, mcast_recv_cb_t recv_cb,
                                              void* recv_arg);
MCAST_API mcast_status_t mcast_group_member(mcast_group_h group, mcast_member_t* out);
/* The caller becomes the leader. `members` has `count` names, the caller's included, each once, at
 * most one per host. */
MCAST_API mcast_status_t mcast_group_lead(mcast_group_h group, const mcast_member_t* members,
                                          size_t count);
/* MCAST_INPROGRESS until the outcome is known; then MCAST_OK (data may flow), or the failure.
 * Messages may arrive before that, because members learn the outcome one after the other. If the
 * leader's process dies before the outcome, members that its REGISTER has reached fail after some
 * seconds. The others stay MCAST_INPROGRESS: limit the wait. */
MCAST_API mcast_status_t mcast_group_test(mcast_group_h group);
MCAST_API mcast_context_h mcast_group_context(mcast_group_h group);
/* Call it when no member needs the group any more: the leader's call unregisters it. Outstanding
 * operations end with MCAST_ERR_CANCELED. Blocks while another thread is inside
 * mcast_progress(). */
MCAST_API void mcast_group_destroy(mcast_group_h group);

/* ---- data ---- */

/* Sends up to max_eager bytes, copied before the call returns, and `imm` to all other members.
 * MCAST_OK, or MCAST_ERR_AGAIN while send_depth messages are unacknowledged. */
MCAST_API mcast_status_t mcast_send_eager(mcast_group_h group, const void* data, size_t length,
                                          uint32_t imm);
/* The same: pack(dest, arg) writes at most max_eager bytes and returns their number. It runs inside
 * the call and may call nothing here. `length_out` may be NULL. */
typedef size_t (*mcast_pack_cb_t)(void* dest, void* arg);
MCAST_API mcast_status_t mcast_send_eager_pack(mcast_group_h group, mcast_pack_cb_t pack, void* arg,
                                               uint32_t imm, size_t* length_out);
/* Gives back a buffer that a recv_cb kept; `data` as the callback saw it. */
MCAST_API void mcast_recv_release(mcast_group_h group, void* data);

/* Registers memory for bulk operations of the context's groups; read-only memory serves sends only.
 * Blocks while the device pins pages, 100 ms a GiB and more. Deregister it once nothing uses it. */
MCAST_API mcast_status_t mcast_mem_register(mcast_context_h context, void* address, size_t length,
                                            mcast_mem_h* out);
MCAST_API void mcast_mem_deregister(mcast_mem_h mem);

/* A bulk operation or reduction in flight, in the caller's memory: leave it alone until done() has
 * run, once. */
typedef struct mcast_op mcast_op_t;
struct mcast_op {
  void (*done)(mcast_op_t* op, mcast_status_t status, size_t length, uint32_t imm);
  void* user;
};

/* Sends `length` bytes and `imm` to all other members; done() runs when every one has acknowledged.
 * At most max_message bytes (mcast_group_query), which is known once the group is active.
 * `mem` covers the buffer; NULL: registered for the time of the operation. MCAST_INPROGRESS,
 * MCAST_ERR_AGAIN, or an error, after which done() does not run. */
MCAST_API mcast_status_t mcast_send(mcast_group_h group, const void* data, size_t length,
                                    mcast_mem_h mem, uint32_t imm, mcast_op_t* op);
/* Posts a buffer for the next bulk message; allowed from the group's creation on. Buffers take
 * messages in the order of posting. A longer message fails the group (MCAST_ERR_FABRIC). The sender
 * should know that all have posted: its packets wait for a retry timer otherwise. */
MCAST_API mcast_status_t mcast_recv(mcast_group_h group, void* buffer, size_t length,
                                    mcast_mem_h mem, mcast_op_t* op);

#ifdef __cplusplus
}
#endif
#endif
