// rc_mcast's interface and endpoint: one interface is one member of one group, its endpoint the
// sending end.
//
// README.md maps UCT's calls to libmcast's. Messages of a bulk lane match in order. Not thread-safe
// beyond UCT's promise for UCS_THREAD_MODE_SINGLE.
#pragma once

#include <mcast/uct.h>

#include <deque>
#include <vector>

#include "ucx-transport/bounce_buffers.h"
#include "ucx-transport/contexts.h"
#include "ucx-transport/uct_layout.h"

namespace cepheus::uct {

struct InterfaceConfig {
  uct_iface_config_t super;
  unsigned lane;  // mcast_lane_t
  size_t max_eager;
  unsigned recv_depth, send_depth;
  unsigned lost_member;  // mcast_lost_member_t
  ContextConfig context;
};
extern ucs_config_field_t interface_config_table[];

// A bulk operation handed to libmcast; recycled by its interface.
struct Operation;

// Given to AM handlers that keep a buffer, so that they can return it.
struct InterfaceState;
struct BufferRelease {
  uct_recv_desc_t super;
  InterfaceState* state;
};

struct InterfaceState {
  mcast_group_h group = nullptr;  // null once the endpoint was destroyed
  mcast_context_h context = nullptr;
  rc_mcast_record_t record{};
  bool is_joined = false;  // by its endpoint
  bool is_active = false;  // once sends are possible
  mcast_lane_t lane = MCAST_LANE_EAGER;
  size_t max_message = 0;
  unsigned recv_depth = 0;
  size_t rx_headroom = 0;  // UCT's: bytes from a descriptor's beginning to its data
  BufferRelease release{};
  std::vector<Operation*> idle;  // owned
  bool is_closed = false;        // no callbacks
  BounceBuffers bounces;
  std::deque<uct_pending_req_t*> pending;
  std::vector<uct_completion_t*> flushes;
  ucs_status_t failure = UCS_OK;  // once the group failed
  bool is_reported = false;       // the failure, in the log
  ucs_log_level_t failure_level = UCS_LOG_LEVEL_ERROR;
};

// UCS classes are allocated with calloc: C++ state hangs off a pointer.
struct Interface {
  uct_base_iface_t super;
  InterfaceState* state;
};
struct Endpoint {
  uct_base_ep_t super;
};

inline Interface* interface_of(uct_iface_h iface) { return reinterpret_cast<Interface*>(iface); }
inline Interface* interface_of(uct_ep_h ep) { return reinterpret_cast<Interface*>(ep->iface); }

ucs_status_t to_ucs(mcast_status_t status);

// endpoint.cc
ucs_status_t join_group(const uct_ep_params_t* params);
void leave_group(InterfaceState& state);
// True if `address` is a list of members that has `record`.
bool names_member(const uct_iface_addr_t* address, const rc_mcast_record_t& record);
ucs_status_t ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void* payload,
                         unsigned length);
ssize_t ep_am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned flags);
ucs_status_t ep_tag_eager_zcopy(uct_ep_h ep, uct_tag_t tag, uint64_t imm, const uct_iov_t* iov,
                                size_t iovcnt, unsigned flags, uct_completion_t* comp);
ucs_status_t ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t* comp);
ucs_status_t ep_check(uct_ep_h ep, unsigned flags, uct_completion_t* comp);
ucs_status_t ep_pending_add(uct_ep_h ep, uct_pending_req_t* req, unsigned flags);
void ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void* arg);

// tag_lane.cc
ucs_status_t iface_tag_recv_zcopy(uct_iface_h iface, uct_tag_t tag, uct_tag_t mask,
                                  const uct_iov_t* iov, size_t iovcnt, uct_tag_context_t* ctx);
ucs_status_t iface_tag_recv_cancel(uct_iface_h iface, uct_tag_context_t* ctx, int force);

// put_lane.cc
ucs_status_t ep_put_zcopy(uct_ep_h ep, const uct_iov_t* iov, size_t iovcnt, uint64_t remote_addr,
                          uct_rkey_t rkey, uct_completion_t* comp);
ssize_t ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack, void* arg, uint64_t remote_addr,
                     uct_rkey_t rkey);

// operation.cc: frees them.
void release_operations(InterfaceState& state);

// interface.cc
uct_iface_ops_t make_interface_ops();
uct_iface_internal_ops_t* internal_ops();
ucs_status_t open_state(const uct_base_iface_t& base, uct_worker_h worker,
                        const uct_iface_params_t& params, const InterfaceConfig& config,
                        InterfaceState** out);
void close_state(InterfaceState* state);
// The eager lane's callback of libmcast; `base` is its argument.
mcast_status_t on_eager(void* base, void* data, size_t length, uint32_t imm);
// Logs mcast_last_error(), at the level of UCX_RC_MCAST_FAILURE.
void report(ucs_log_level_t level, const char* failure);
// UCS_INPROGRESS until the group's registration has an outcome; a failure is logged once.
ucs_status_t group_status(InterfaceState& state);
// UCS_OK, or the reason why no message can be sent; before the outcome UCS_ERR_NO_RESOURCE.
ucs_status_t check_may_send(InterfaceState& state);
// Their number.
unsigned end_flushes(InterfaceState& state, ucs_status_t status);
ucs_status_t interface_flush(InterfaceState& state, uct_completion_t* comp);

}  // namespace cepheus::uct

// UCS's class macros paste names, so the classes live at global scope (classes.cc).
typedef cepheus::uct::Interface uct_rc_mcast_iface_t;
typedef cepheus::uct::Endpoint uct_rc_mcast_ep_t;
extern "C" {
UCS_CLASS_DECLARE_NEW_FUNC(uct_rc_mcast_iface_t, uct_iface_t, uct_md_h, uct_worker_h,
                           const uct_iface_params_t*, const uct_iface_config_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_rc_mcast_iface_t, uct_iface_t);
UCS_CLASS_DECLARE_NEW_FUNC(uct_rc_mcast_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_rc_mcast_ep_t, uct_ep_t);
}
