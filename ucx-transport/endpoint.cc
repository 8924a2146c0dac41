#include <algorithm>
#include <array>

#include "ucx-transport/interface.h"

namespace cepheus::uct {

ucs_status_t to_ucs(mcast_status_t status) {
  static constexpr std::array kStatuses = {UCS_INPROGRESS,        UCS_OK,
                                           UCS_ERR_INVALID_PARAM, UCS_ERR_NO_RESOURCE,
                                           UCS_ERR_NO_DEVICE,     UCS_ERR_NO_MEMORY,
                                           UCS_ERR_REJECTED,      UCS_ERR_TIMED_OUT,
                                           UCS_ERR_REJECTED,      UCS_ERR_IO_ERROR,
                                           UCS_ERR_CANCELED};
  static_assert(kStatuses.size() == MCAST_INPROGRESS - MCAST_ERR_CANCELED + 1);
  const auto place = static_cast<std::size_t>(MCAST_INPROGRESS - status);
  return place < kStatuses.size() ? kStatuses[place] : UCS_ERR_IO_ERROR;
}

ucs_status_t check_endpoint_params(const uct_ep_params_t* params) {
  const bool has_address = (params->field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) != 0;
  if (has_address && uct_iface_is_reachable(params->iface, nullptr, params->iface_addr) != 0) {
    return UCS_OK;
  }
  ucs_error(
      "rc_mcast: an endpoint sends to the group of its interface: pass that interface's own "
      "address");
  return UCS_ERR_UNREACHABLE;
}

namespace {

struct ShortMessage {
  uint64_t header;
  const void* payload;
  unsigned length;
};

size_t pack_short(void* dest, void* arg) {
  const auto* message = static_cast<const ShortMessage*>(arg);
  memcpy(dest, &message->header, sizeof message->header);
  if (message->length != 0) {
    memcpy(static_cast<char*>(dest) + sizeof message->header, message->payload, message->length);
  }
  return sizeof message->header + message->length;
}

}  // namespace

ucs_status_t ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void* payload,
                         unsigned length) {
  InterfaceState& state = *interface_of(ep)->state;
  if (id >= UCT_AM_ID_MAX || sizeof header + length > state.max_message)
    return UCS_ERR_INVALID_PARAM;
  ShortMessage message{header, payload, length};
  size_t packed = 0;
  return to_ucs(mcast_send_eager_pack(state.group, pack_short, &message, id, &packed));
}

ssize_t ep_am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned) {
  InterfaceState& state = *interface_of(ep)->state;
  if (id >= UCT_AM_ID_MAX) return UCS_ERR_INVALID_PARAM;
  size_t packed = 0;
  const ucs_status_t status = to_ucs(mcast_send_eager_pack(state.group, pack, arg, id, &packed));
  return status == UCS_OK ? static_cast<ssize_t>(packed) : static_cast<ssize_t>(status);
}

ucs_status_t ep_flush(uct_ep_h ep, unsigned, uct_completion_t* comp) {
  return interface_flush(*interface_of(ep)->state, comp);
}

ucs_status_t ep_check(uct_ep_h ep, unsigned, uct_completion_t*) {
  InterfaceState& state = *interface_of(ep)->state;
  return state.failure != UCS_OK ? state.failure : to_ucs(mcast_group_test(state.group));
}

ucs_status_t ep_pending_add(uct_ep_h ep, uct_pending_req_t* req, unsigned) {
  interface_of(ep)->state->pending.push_back({ep, req});
  return UCS_OK;
}

void ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void* arg) {
  auto& pending = interface_of(ep)->state->pending;
  const auto own = std::stable_partition(
      pending.begin(), pending.end(), [ep](const PendingRequest& each) { return each.ep != ep; });
  const std::vector<PendingRequest> purged(own, pending.end());
  pending.erase(own, pending.end());
  for (const PendingRequest& each : purged) {
    if (cb != nullptr) cb(each.request, arg);
  }
}

}  // namespace cepheus::uct
