#include "ucx-transport/interface.h"

#include <algorithm>
#include <new>

namespace cepheus::uct {

ucs_config_field_t interface_config_table[] = {
    {"", "", nullptr, offsetof(InterfaceConfig, super),
     UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},
    {},
};

namespace {

// UCT puts the release function right before the data of a kept descriptor.
static_assert(MCAST_RECV_HEADROOM >= sizeof(uct_recv_desc_t*));

void release_buffer(uct_recv_desc_t* self, void* data) {
  mcast_recv_release(reinterpret_cast<BufferRelease*>(self)->state->group, data);
}

mcast_status_t on_eager(void* arg, void* data, size_t length, uint32_t imm) {
  auto* base = static_cast<uct_base_iface_t*>(arg);
  InterfaceState* state = reinterpret_cast<Interface*>(base)->state;
  if (imm >= UCT_AM_ID_MAX) return MCAST_OK;  // an unknown active message: no handler
  const uct_am_handler_t& handler = base->am[imm];
  const ucs_status_t status =
      handler.cb(handler.arg, data, static_cast<unsigned>(length), UCT_CB_PARAM_FLAG_DESC);
  if (status != UCS_INPROGRESS) return MCAST_OK;
  uct_recv_desc(data) = &state->release.super;
  return MCAST_INPROGRESS;
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
    attr->cap.tag.eager.max_zcopy = state.max_message;
    attr->cap.tag.eager.max_iov = 1;
    attr->cap.tag.recv.min_recv = 0;
    attr->cap.tag.recv.max_zcopy = state.max_message;
    attr->cap.tag.recv.max_iov = 1;
    attr->cap.tag.recv.max_outstanding = 64;
    attr->cap.flags |= UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY;
    attr->cap.put.max_bcopy = std::min(BounceBuffers::kBytes, state.max_message);
    attr->cap.put.max_zcopy = state.max_message;
    attr->cap.put.max_iov = 1;
    attr->cap.put.opt_zcopy_align = 1;
    attr->cap.put.align_mtu = 1;
  }
  attr->iface_addr_len = sizeof(GroupAddress);
  attr->device_addr_len = 0;
  attr->ep_addr_len = 0;
  attr->latency = ucs_linear_func_make(1e-6, 0);
  attr->bandwidth.dedicated = 0;
  attr->bandwidth.shared = 12500.0 * (1 << 20);
  attr->overhead = 100e-9;
  return UCS_OK;
}

ucs_status_t get_address(uct_iface_h iface, uct_iface_addr_t* out) {
  memcpy(out, &interface_of(iface)->state->address, sizeof(GroupAddress));
  return UCS_OK;
}

ucs_status_t get_device_address(uct_iface_h, uct_device_addr_t*) { return UCS_OK; }

// Only the interface's own group: UCP, which passes peers' addresses, must never take this
// transport for a lane.
int is_reachable(const uct_iface_h iface, const uct_device_addr_t*, const uct_iface_addr_t* to) {
  GroupAddress address;
  if (to == nullptr) return 0;
  memcpy(&address, to, sizeof address);
  return address == interface_of(iface)->state->address;
}

unsigned run_pending(InterfaceState& state) {
  unsigned count = 0;
  while (!state.pending.empty()) {
    const PendingRequest next = state.pending.front();
    state.pending.pop_front();
    const ucs_status_t status = next.request->func(next.request);
    if (status == UCS_OK) {
      ++count;
    } else {
      state.pending.push_front(next);
      break;
    }
  }
  return count;
}

unsigned run_flushes(InterfaceState& state) {
  if (state.flushes.empty()) return 0;
  const unsigned outstanding = mcast_group_outstanding(state.group);
  if (outstanding != 0 && state.failure == UCS_OK) return 0;
  std::vector<uct_completion_t*> done;
  done.swap(state.flushes);
  for (uct_completion_t* comp : done) {
    uct_completion_update_status(comp, outstanding != 0 ? state.failure : UCS_OK);
    if (--comp->count == 0) comp->func(comp);
  }
  return static_cast<unsigned>(done.size());
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

ucs_status_t interface_flush(InterfaceState& state, uct_completion_t* comp) {
  if (mcast_group_outstanding(state.group) == 0) return UCS_OK;
  if (state.failure == UCS_OK) {
    const ucs_status_t status = to_ucs(mcast_group_test(state.group));
    if (status < 0) state.failure = status;
  }
  if (state.failure != UCS_OK) return state.failure;
  if (comp != nullptr) state.flushes.push_back(comp);
  return UCS_INPROGRESS;
}

ucs_status_t open_state(uct_base_iface_t& base, const InterfaceConfig& config,
                        InterfaceState** out) {
  mcast_group_h group = config.group;
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  mcast_member_t member;
  if (group == nullptr || mcast_group_query(group, &attr) != MCAST_OK ||
      mcast_group_member(group, &member) != MCAST_OK) {
    ucs_error(
        "rc_mcast: an interface is a member of a group: open it with cepheus_uct_rc_mcast_open() "
        "(<mcast/uct.h>), which takes the group's handle");
    return UCS_ERR_INVALID_PARAM;
  }
  auto* state = new (std::nothrow) InterfaceState;
  if (state == nullptr) return UCS_ERR_NO_MEMORY;
  state->group = group;
  state->context = mcast_group_context(group);
  state->address = {kAddressMagic, member.ipv4, member.qpn};
  state->lane = attr.lane;
  state->max_message = attr.max_message;
  state->release.super.cb = release_buffer;
  state->release.state = state;
  *out = state;
  if (attr.lane == MCAST_LANE_EAGER) return to_ucs(mcast_group_set_recv(group, on_eager, &base));
  return UCS_OK;
}

void close_state(InterfaceState* state) {
  if (state == nullptr) return;
  const auto drop = [](void*, void*, size_t, uint32_t) { return MCAST_OK; };
  if (state->lane == MCAST_LANE_EAGER) mcast_group_set_recv(state->group, drop, nullptr);
  state->is_closed = true;
  release_if_unused(state);
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

}  // namespace cepheus::uct
