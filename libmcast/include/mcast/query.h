/* libmcast: attributes of a context and of a group. */
#ifndef MCAST_QUERY_H
#define MCAST_QUERY_H

#include <mcast/mcast.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcast_context_attr {
  size_t struct_size;
  char device[64];
  char device_why[128]; /* why this device: "named by the user", "the only one" */
  uint32_t ipv4;        /* host byte order; the host's identity in groups */
  int gid_index;
  uint32_t path_mtu;         /* bytes */
  size_t max_message;        /* largest bulk message, bytes */
  int is_up;                 /* the port is active; once it was not, open another context */
  uint64_t registered_bytes; /* memory that is registered with this context */
  uint32_t traffic_class, service_level, flow_label; /* as mcast_context_params_t */
  uint32_t ack_timeout;         /* code of the queue pairs' time-out: 4.096 us * 2^code */
  uint32_t progress_timeout_ms; /* the one that holds */
  char contradiction[160];      /* a parameter that the NIC can't keep, and what to do; or "" */
} mcast_context_attr_t;
#define MCAST_CONTEXT_ATTR_INIT                                                    \
  {                                                                                \
    sizeof(mcast_context_attr_t), {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } \
  }

MCAST_API mcast_status_t mcast_context_query(mcast_context_h context, mcast_context_attr_t* out);

typedef enum mcast_group_state {
  MCAST_GROUP_WAITING,     /* created: answers a leader's REGISTER */
  MCAST_GROUP_REGISTERING, /* REGISTER sent (leader) or confirmed (member) */
  MCAST_GROUP_ACTIVE,
  MCAST_GROUP_FAILED,
} mcast_group_state_t;

typedef enum mcast_cause {
  MCAST_CAUSE_NONE,         /* it has not failed */
  MCAST_CAUSE_REGISTRATION, /* refused, or not answered in time */
  MCAST_CAUSE_WORK,         /* a work request failed: retries exceeded, or a wrong length */
  MCAST_CAUSE_WATCHDOG,     /* no send completed, or the leader did not answer, for too long */
  MCAST_CAUSE_DEVICE,       /* the device or its port reports that it is gone */
  MCAST_CAUSE_LEADER,       /* the leader unregistered the group, perhaps because a member failed */
  MCAST_CAUSE_STOPPED,      /* mcast_group_stop() */
} mcast_cause_t;

typedef struct mcast_group_attr {
  size_t struct_size;
  mcast_group_state_t state;
  mcast_lane_t lane;
  mcast_status_t status; /* as mcast_group_test() */
  mcast_cause_t cause;
  char reason[256]; /* of the failure: names the missing or refusing member */
  uint32_t mcst_id; /* group address, host byte order; a sender group's: the sender's; 0: none */
  uint16_t epoch;   /* of mcst_id */
  uint32_t members; /* leader: members without the evicted ones; others: 0 */
  int is_leader;
  /* Bytes. EAGER: max_eager. BULK: as device, path MTU and window allow. REDUCTION: of a gather,
   * as path MTU and window allow. The window bounds no NIC that limits its packets by itself. */
  size_t max_message;
  uint64_t messages_sent, bytes_sent, messages_received, bytes_received;
  unsigned sends_outstanding; /* not yet acknowledged by every member; REDUCTION: by the switch */
  unsigned recvs_posted;      /* 0 once a failed group has handed over all that had arrived */
  /* Packets that may be under way, as the slowest queue on the way takes them; 0: no limit is
   * known. Sends beyond it are refused (MCAST_ERR_AGAIN). It changes while the group is active. */
  uint32_t window;
  /* BULK, bytes: messages of this length keep the slowest queue busy. Fixed, and alike on all
   * members, once the group is active; 0: any length does. WRITEs go in portions. */
  size_t portion;
  /* Payload bytes of a packet: the least of all members' and of all ports on the way, once the
   * group is registered; before that the device's. */
  uint32_t path_mtu;
  /* Leader: members without a confirmation of the registration's present step. If it timed out and
   * all other members are missing, perhaps no switch serves groups. */
  uint32_t members_missing;
  /* REDUCTION, once active. is_flat: the switches combine values in pairs by the members' addresses.
   * is_ascending: addresses ascend with members' indices in mcast_group_lead(). <mcast/reduce.h> has
   * what depends on them. */
  int is_flat, is_ascending;
} mcast_group_attr_t;
#define MCAST_GROUP_ATTR_INIT                                                                      \
  {                                                                                                \
    sizeof(mcast_group_attr_t), MCAST_GROUP_WAITING, MCAST_LANE_EAGER, MCAST_OK, MCAST_CAUSE_NONE, \
        {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                     \
  }

MCAST_API mcast_status_t mcast_group_query(mcast_group_h group, mcast_group_attr_t* out);
/* Sends of this member that not every member has acknowledged yet, eager and bulk. Of a reduction:
 * packets that its switch has not acknowledged, which says nothing about other members. */
MCAST_API unsigned mcast_group_outstanding(mcast_group_h group);

#ifdef __cplusplus
}
#endif
#endif
