// States of an interface: made, joined by its endpoint, active, failed or closed. progress() drives
// libmcast, then runs queued requests in order until one is not done, then ends flushes. A failure
// of the group is logged once; later flushes and checks return it.
//
// A handler may keep an eager buffer if its headroom fits into libmcast's; otherwise it gets none
// and copies. The figures of query() for latency and bandwidth are constants, not measurements.
#include "ucx-transport/interface.h"

#include <mcast/query.h>

#include <algorithm>
#include <new>

#include "ucx-transport/memory_domain.h"

namespace cepheus::uct {

namespace {

const char* const kLanes[] = {"eager", "bulk", nullptr};
static_assert(MCAST_LANE_EAGER == 0 && MCAST_LANE_BULK == 1);
const char* const kLostMembers[] = {"evict", "end-group", nullptr};
static_assert(MCAST_LOST_MEMBER_EVICTED == 0 && MCAST_LOST_MEMBER_ENDS_GROUP == 1);

constexpr unsigned kDefaultDepth = 64;  // libmcast's

constexpr size_t at(size_t in_context) { return offsetof(InterfaceConfig, context) + in_context; }

}  // namespace

ucs_config_field_t interface_config_table[] = {
    {"", "FAILURE=error", nullptr, offsetof(InterfaceConfig, super),
     UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},
    {"LANE", "eager",
     "Send active messages (eager), or tagged messages and puts from the program's memory (bulk)",
     offsetof(InterfaceConfig, lane), UCS_CONFIG_TYPE_ENUM(kLanes)},
    {"MAX_EAGER", "8k", "Largest active message, bytes", offsetof(InterfaceConfig, max_eager),
     UCS_CONFIG_TYPE_MEMUNITS},
    {"RECV_DEPTH", "64", "Posted buffers (eager), or receives that may be posted (bulk)",
     offsetof(InterfaceConfig, recv_depth), UCS_CONFIG_TYPE_UINT},
    {"SEND_DEPTH", "64", "Sends that not every member has acknowledged yet",
     offsetof(InterfaceConfig, send_depth), UCS_CONFIG_TYPE_UINT},
    {"LOST_MEMBER", "evict",
     "Let the others go on without a lost member (evict), or let the group fail (end-group); the "
     "leader's counts",
     offsetof(InterfaceConfig, lost_member), UCS_CONFIG_TYPE_ENUM(kLostMembers)},
    {"KEY_FILE", "",
     "File with the fabric's key, which signs registrations (empty: CEPHEUS_KEY_FILE, if set)",
     at(offsetof(ContextConfig, key_file)), UCS_CONFIG_TYPE_STRING},
    {"MCST_POOL", "", "CIDR of group addresses (empty: 198.18.0.0/15)",
     at(offsetof(ContextConfig, mcst_pool)), UCS_CONFIG_TYPE_STRING},
    {"GID_INDEX", "-1", "Index of the device's GID (-1: by the route to groups)",
     at(offsetof(ContextConfig, gid_index)), UCS_CONFIG_TYPE_INT},
    {"MRP_PORT", "0", "UDP port of registration (0: 18516)", at(offsetof(ContextConfig, mrp_port)),
     UCS_CONFIG_TYPE_UINT},
    {"PATH_MTU", "0",
     "Most payload bytes of a packet (0: the port's); groups take less where others do",
     at(offsetof(ContextConfig, path_mtu)), UCS_CONFIG_TYPE_MEMUNITS},
    {"MAX_EAGER_MEMORY", "64m", "Buffers of all eager lanes of a worker, bytes",
     at(offsetof(ContextConfig, max_eager_memory)), UCS_CONFIG_TYPE_MEMUNITS},
    {"REGISTER_TIMEOUT", "1s", "Time limit of a registration",
     at(offsetof(ContextConfig, register_timeout)), UCS_CONFIG_TYPE_TIME},
    {"REGISTER_SILENCE", "0s",
     "Time without an answer that ends a registration (0: the time limit alone counts)",
     at(offsetof(ContextConfig, register_silence)), UCS_CONFIG_TYPE_TIME},
    {"PROGRESS_TIMEOUT", "8s", "Time without a completed send after which the group fails",
     at(offsetof(ContextConfig, progress_timeout)), UCS_CONFIG_TYPE_TIME},
    {"LINK_OUTAGE", "2s", "Longest time that a link may be down without ending groups, up to 30s",
     at(offsetof(ContextConfig, link_outage)), UCS_CONFIG_TYPE_TIME},
    {"TRAFFIC_CLASS", "106", "IPv4 TOS of the groups' packets, 0 to 255",
     at(offsetof(ContextConfig, traffic_class)), UCS_CONFIG_TYPE_UINT},
    {"SERVICE_LEVEL", "0", "Priority of the groups' packets in a VLAN tag, 0 to 7",
     at(offsetof(ContextConfig, service_level)), UCS_CONFIG_TYPE_UINT},
    {"FLOW_LABEL", "0",
     "Flow label, from which NICs derive the groups' UDP source port, 0 to 1048575 (0: none)",
     at(offsetof(ContextConfig, flow_label)), UCS_CONFIG_TYPE_UINT},
    {},
};

namespace {

// UCT puts the release function right before a kept descriptor. UCP's workers ask for more headroom
// than there is: their handlers get no descriptor, and copy what they keep.
constexpr size_t kMostHeadroom = MCAST_RECV_HEADROOM - sizeof(uct_recv_desc_t*);

void release_buffer(uct_recv_desc_t* self, void* descriptor) {
  const InterfaceState& state = *reinterpret_cast<BufferRelease*>(self)->state;
  mcast_recv_release(state.group, static_cast<char*>(descriptor) + state.rx_headroom);
}

ucs_status_t query(uct_iface_h iface, uct_iface_attr_t* attr) {
  Interface* self = interface_of(iface);
  const InterfaceState& state = *self->state;
  uct_base_iface_query(&self->super, attr);
  attr->cap.flags = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_PENDING |
                    UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_EP_CHECK;
  if (state.lane == MCAST_LANE_EAGER) {
    attr->cap.flags |= UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY;
    attr->cap.am.max_short = state.max_message;
    attr->cap.am.max_bcopy = state.max_message;
  } else {
    attr->cap.flags |= UCT_IFACE_FLAG_TAG_EAGER_ZCOPY;
    // One message at its receivers: it may be as long as the group's window, once that is known.
    mcast_group_attr_t group = MCAST_GROUP_ATTR_INIT;
    mcast_group_query(state.group, &group);
    attr->cap.tag.eager.max_zcopy = group.max_message;
    attr->cap.tag.eager.max_iov = 1;
    attr->cap.tag.recv.min_recv = 0;
    attr->cap.tag.recv.max_zcopy = state.max_message;
    attr->cap.tag.recv.max_iov = 1;
    attr->cap.tag.recv.max_outstanding = state.recv_depth;
    attr->cap.flags |= UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY;
    attr->cap.put.max_bcopy = std::min(BounceBuffers::kBytes, state.max_message);
    attr->cap.put.max_zcopy = state.max_message;
    attr->cap.put.max_iov = 1;
    attr->cap.put.opt_zcopy_align = 1;
    attr->cap.put.align_mtu = 1;
  }
  attr->iface_addr_len = sizeof(rc_mcast_record_t);
  attr->device_addr_len = 0;
  attr->ep_addr_len = 0;
  attr->latency = ucs_linear_func_make(1e-6, 0);
  attr->bandwidth.dedicated = 0;
  attr->bandwidth.shared = 12500.0 * (1 << 20);
  attr->overhead = 100e-9;
  return UCS_OK;
}

ucs_status_t get_address(uct_iface_h iface, uct_iface_addr_t* out) {
  memcpy(out, &interface_of(iface)->state->record, sizeof(rc_mcast_record_t));
  return UCS_OK;
}

ucs_status_t get_device_address(uct_iface_h, uct_device_addr_t*) { return UCS_OK; }

int is_reachable(const uct_iface_h iface, const uct_device_addr_t*, const uct_iface_addr_t* to) {
  return to != nullptr && names_member(to, interface_of(iface)->state->record) ? 1 : 0;
}

#if CEPHEUS_UCX_1_18
int is_reachable_v2(uct_iface_h iface, const uct_iface_is_reachable_params_t* params) {
  const bool has_address = (params->field_mask & CEPHEUS_REACHABLE_FIELD_IFACE_ADDR) != 0;
  return has_address ? is_reachable(iface, nullptr, params->iface_addr) : 0;
}
#endif

unsigned run_pending(InterfaceState& state) {
  unsigned count = 0;
  while (!state.pending.empty()) {
    uct_pending_req_t* const next = state.pending.front();
    state.pending.pop_front();
    const ucs_status_t status = next->func(next);
    if (status == UCS_OK) {
      ++count;
    } else {
      state.pending.push_front(next);
      break;
    }
  }
  return count;
}

ucs_status_t flush_status(InterfaceState& state) {
  if (!state.is_joined || state.group == nullptr) return UCS_OK;
  const ucs_status_t status = group_status(state);
  if (status != UCS_OK) return status;
  return mcast_group_outstanding(state.group) == 0 ? UCS_OK : UCS_INPROGRESS;
}

unsigned run_flushes(InterfaceState& state) {
  if (state.flushes.empty()) return 0;
  const ucs_status_t status = flush_status(state);
  if (status == UCS_INPROGRESS) return 0;
  return end_flushes(state, status);
}

unsigned progress(uct_iface_h iface) {
  InterfaceState& state = *interface_of(iface)->state;
  unsigned count = mcast_progress(state.context);
  if (!state.pending.empty()) count += run_pending(state);
  return count + run_flushes(state);
}

ucs_status_t flush(uct_iface_h iface, unsigned, uct_completion_t* comp) {
  return interface_flush(*interface_of(iface)->state, comp);
}

}  // namespace

unsigned end_flushes(InterfaceState& state, ucs_status_t status) {
  std::vector<uct_completion_t*> done;
  done.swap(state.flushes);
  for (uct_completion_t* comp : done) {
    uct_completion_update_status(comp, status);
    if (--comp->count == 0) comp->func(comp);
  }
  return static_cast<unsigned>(done.size());
}

mcast_status_t on_eager(void* arg, void* data, size_t length, uint32_t imm) {
  auto* base = static_cast<uct_base_iface_t*>(arg);
  InterfaceState* state = reinterpret_cast<Interface*>(base)->state;
  if (imm >= UCT_AM_ID_MAX) return MCAST_OK;  // an unknown active message: no handler
  const uct_am_handler_t& handler = base->am[imm];
  const unsigned flags = state->rx_headroom <= kMostHeadroom ? UCT_CB_PARAM_FLAG_DESC : 0;
  const ucs_status_t status = handler.cb(handler.arg, data, static_cast<unsigned>(length), flags);
  if (status != UCS_INPROGRESS) return MCAST_OK;
  uct_recv_desc(static_cast<char*>(data) - state->rx_headroom) = &state->release.super;
  return MCAST_INPROGRESS;
}

void report(ucs_log_level_t level, const char* failure) {
  ucs_log(level, "rc_mcast: %s: %s", failure, mcast_last_error());
}

ucs_status_t group_status(InterfaceState& state) {
  if (state.group == nullptr) return UCS_ERR_CANCELED;
  const mcast_status_t status = mcast_group_test(state.group);
  if (status < 0) {
    if (!state.is_reported) report(state.failure_level, "the group failed");
    state.is_reported = true;
    state.failure = to_ucs(status);
  }
  return state.failure != UCS_OK ? state.failure : to_ucs(status);
}

ucs_status_t check_may_send(InterfaceState& state) {
  if (state.is_active) return UCS_OK;
  const ucs_status_t status = group_status(state);
  state.is_active = status == UCS_OK;
  return status == UCS_INPROGRESS ? UCS_ERR_NO_RESOURCE : status;
}

ucs_status_t interface_flush(InterfaceState& state, uct_completion_t* comp) {
  const ucs_status_t status = flush_status(state);
  if (status == UCS_INPROGRESS && comp != nullptr) state.flushes.push_back(comp);
  return status;
}

ucs_status_t open_state(const uct_base_iface_t& base, uct_worker_h worker,
                        const uct_iface_params_t& iface_params, const InterfaceConfig& config,
                        InterfaceState** out) {
  mcast_context_h context = nullptr;
  mcast_status_t status = open_context(base.md, worker, config.context, &context);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = static_cast<mcast_lane_t>(config.lane);
  params.max_eager = config.max_eager;
  params.recv_depth = config.recv_depth;
  params.send_depth = config.send_depth;
  params.lost_member = static_cast<mcast_lost_member_t>(config.lost_member);
  mcast_group_h group = nullptr;
  if (status == MCAST_OK) status = mcast_group_create(context, &params, &group);
  if (status != MCAST_OK) {
    report(base.config.failure_level, "no group");
    return to_ucs(status);
  }
  auto* state = new (std::nothrow) InterfaceState;
  if (state == nullptr) {
    mcast_group_destroy(group);
    return UCS_ERR_NO_MEMORY;
  }
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  mcast_group_query(group, &attr);
  state->group = group;
  state->context = context;
  state->record.magic = RC_MCAST_RECORD_MAGIC;
  mcast_group_member(group, &state->record.member);
  state->failure_level = base.config.failure_level;
  state->lane = attr.lane;
  state->max_message = attr.max_message;
  state->recv_depth = config.recv_depth != 0 ? config.recv_depth : kDefaultDepth;
  if ((iface_params.field_mask & UCT_IFACE_PARAM_FIELD_RX_HEADROOM) != 0)
    state->rx_headroom = iface_params.rx_headroom;
  state->release.super.cb = release_buffer;
  state->release.state = state;
  *out = state;
  return UCS_OK;
}

void close_state(InterfaceState* state) {
  if (state == nullptr) return;
  state->is_closed = true;
  leave_group(*state);
  release_operations(*state);
  delete state;
}

uct_iface_ops_t make_interface_ops() {
  uct_iface_ops_t o;
  memset(&o, 0, sizeof o);
  o.ep_am_short = ep_am_short;
  o.ep_am_bcopy = ep_am_bcopy;
  o.ep_put_bcopy = ep_put_bcopy;
  o.ep_put_zcopy = ep_put_zcopy;
  o.ep_tag_eager_zcopy = ep_tag_eager_zcopy;
  o.iface_tag_recv_zcopy = iface_tag_recv_zcopy;
  o.iface_tag_recv_cancel = iface_tag_recv_cancel;
  o.ep_pending_add = ep_pending_add;
  o.ep_pending_purge = ep_pending_purge;
  o.ep_flush = ep_flush;
  o.ep_fence = uct_base_ep_fence;
  o.ep_check = ep_check;
  o.ep_create = UCS_CLASS_NEW_FUNC_NAME(uct_rc_mcast_ep_t);
  o.ep_destroy = UCS_CLASS_DELETE_FUNC_NAME(uct_rc_mcast_ep_t);
  o.iface_flush = flush;
  o.iface_fence = uct_base_iface_fence;
  o.iface_progress_enable = uct_base_iface_progress_enable;
  o.iface_progress_disable = uct_base_iface_progress_disable;
  o.iface_progress = progress;
  o.iface_close = UCS_CLASS_DELETE_FUNC_NAME(uct_rc_mcast_iface_t);
  o.iface_query = query;
  o.iface_get_device_address = get_device_address;
  o.iface_get_address = get_address;
  o.iface_is_reachable = is_reachable;
  return o;
}

uct_iface_internal_ops_t* internal_ops() {
#if CEPHEUS_UCX_1_18
  static uct_iface_internal_ops_t ops = [] {
    uct_iface_internal_ops_t o{};
    o.iface_estimate_perf = uct_base_iface_estimate_perf;
    o.iface_vfs_refresh = [](uct_iface_h) {};
    o.ep_query = [](uct_ep_h, void*) { return UCS_ERR_UNSUPPORTED; };
    o.ep_invalidate = [](uct_ep_h, unsigned) { return UCS_ERR_UNSUPPORTED; };
    o.ep_connect_to_ep_v2 = [](uct_ep_h, const uct_device_addr_t*, const uct_ep_addr_t*,
                               const void*) { return UCS_ERR_UNSUPPORTED; };
    o.iface_is_reachable_v2 = is_reachable_v2;
    o.ep_is_connected = uct_base_ep_is_connected;
    return o;
  }();
  return &ops;
#else
  return &uct_base_iface_internal_ops;
#endif
}

}  // namespace cepheus::uct
