// join_group() takes the list of members (README.md). It refuses a list without this interface's
// member, a list of more than 65,535, and a second endpoint. The first member of a longer list
// leads the group; all others wait for REGISTER.
//
// Active messages are refused if their number or length is out of range. Before the group is active
// a send returns UCS_ERR_NO_RESOURCE, and the caller repeats it or queues it by ep_pending_add().
// Leaving destroys the group, cancels flushes, and runs callbacks of operations in flight.
#include <array>
#include <vector>

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

namespace {

constexpr char kAddressRule[] =
    "an endpoint's address is the number of the group's members (uint32_t) and then their "
    "addresses, the leader's first, this interface's among them";

// A list of members' records, as uct_ep_create() gets it. Its length is unknown before its first
// word is read, and its place may have any alignment.
class MemberList {
 public:
  static constexpr uint32_t kMost = 0xFFFF;
  explicit MemberList(const uct_iface_addr_t* address)
      : bytes_(reinterpret_cast<const char*>(address)) {
    memcpy(&count_, bytes_, sizeof count_);
    if (count_ > kMost) count_ = 0;  // not a list: RC_MCAST_RECORD_MAGIC, for example
  }
  uint32_t size() const { return count_; }
  rc_mcast_record_t operator[](uint32_t index) const {
    rc_mcast_record_t record;
    memcpy(&record, bytes_ + sizeof count_ + index * sizeof record, sizeof record);
    return record;
  }

 private:
  const char* bytes_;
  uint32_t count_ = 0;
};

bool are_equal(const rc_mcast_record_t& a, const rc_mcast_record_t& b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

ucs_status_t refuse(ucs_status_t status, const char* why) {
  ucs_error("rc_mcast: %s", why);
  return status;
}

mcast_status_t lead(InterfaceState& state, const MemberList& list) {
  std::vector<mcast_member_t> members;
  for (uint32_t i = 0; i < list.size(); ++i) members.push_back(list[i].member);
  return mcast_group_lead(state.group, members.data(), members.size());
}

}  // namespace

// UCP passes single records of peers, and they are no lists. So it never takes this transport for a
// lane.
bool names_member(const uct_iface_addr_t* address, const rc_mcast_record_t& record) {
  const MemberList list(address);
  for (uint32_t i = 0; i < list.size(); ++i) {
    if (are_equal(list[i], record)) return true;
  }
  return false;
}

ucs_status_t join_group(const uct_ep_params_t* params) {
  Interface* const iface = interface_of(params->iface);
  InterfaceState& state = *iface->state;
  const bool has_address = (params->field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) != 0;
  if (!has_address || !names_member(params->iface_addr, state.record))
    return refuse(UCS_ERR_UNREACHABLE, kAddressRule);
  if (state.is_joined)
    return refuse(UCS_ERR_BUSY,
                  "an interface has one endpoint in its life: open another interface");
  if (state.lane == MCAST_LANE_EAGER) mcast_group_set_recv(state.group, on_eager, &iface->super);
  const MemberList list(params->iface_addr);
  // A member alone waits for a leader.
  if (list.size() > 1 && are_equal(list[0], state.record)) {
    const mcast_status_t status = lead(state, list);
    if (status < 0) {
      report(state.failure_level, "the group can't be registered");
      return to_ucs(status);
    }
  }
  state.is_joined = true;
  return UCS_OK;
}

// Callbacks of operations in flight run inside the call.
void leave_group(InterfaceState& state) {
  if (state.group == nullptr) return;
  mcast_group_destroy(state.group);
  state.group = nullptr;
  state.is_active = false;
  if (!state.is_closed) end_flushes(state, UCS_ERR_CANCELED);
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
  if (const ucs_status_t may = check_may_send(state); may != UCS_OK) return may;
  ShortMessage message{header, payload, length};
  size_t packed = 0;
  return to_ucs(mcast_send_eager_pack(state.group, pack_short, &message, id, &packed));
}

ssize_t ep_am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void* arg, unsigned) {
  InterfaceState& state = *interface_of(ep)->state;
  if (id >= UCT_AM_ID_MAX) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t may = check_may_send(state); may != UCS_OK) return may;
  size_t packed = 0;
  const ucs_status_t status = to_ucs(mcast_send_eager_pack(state.group, pack, arg, id, &packed));
  return status == UCS_OK ? static_cast<ssize_t>(packed) : static_cast<ssize_t>(status);
}

ucs_status_t ep_flush(uct_ep_h ep, unsigned, uct_completion_t* comp) {
  return interface_flush(*interface_of(ep)->state, comp);
}

ucs_status_t ep_check(uct_ep_h ep, unsigned, uct_completion_t* comp) {
  InterfaceState& state = *interface_of(ep)->state;
  const ucs_status_t status = group_status(state);
  if (status == UCS_INPROGRESS && comp != nullptr) state.flushes.push_back(comp);
  return status;
}

ucs_status_t ep_pending_add(uct_ep_h ep, uct_pending_req_t* req, unsigned) {
  interface_of(ep)->state->pending.push_back(req);
  return UCS_OK;
}

void ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void* arg) {
  std::deque<uct_pending_req_t*> purged;
  purged.swap(interface_of(ep)->state->pending);
  for (uct_pending_req_t* each : purged) {
    if (cb != nullptr) cb(each, arg);
  }
}

}  // namespace cepheus::uct
