// The domain loads rc_mcast, sets all its variables so that the user's UCX_RC_MCAST_* don't count,
// and opens a memory domain and a worker. A channel is one interface with one endpoint, whose
// address is the list of members (ucx-transport/README.md).
//
// UCT's callback data lie in the bytes of a Transfer, so nothing is allocated for one. A tag that
// differs ends a receive as kMistaken. Progress is the context's, not the worker's.
#include "collectives/group/uct_channel.h"

#include <dlfcn.h>

#include <cstring>
#include <new>
#include <vector>

namespace cepheus::coll {

namespace {

constexpr char kComponent[] = "mcast";
constexpr char kTransport[] = "rc_mcast";

uct_component_h find_component() {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return nullptr;
  uct_component_h found = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attr;
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
    if (uct_component_query(components[i], &attr) == UCS_OK &&
        std::strcmp(attr.name, kComponent) == 0) {
      found = components[i];
    }
  }
  uct_release_component_list(components);
  return found;
}

// UCX 1.18 wants the name with its prefix, and UCX 1.13 without.
ucs_status_t set_variable(void* config, const std::string& prefix, const char* name,
                          const char* value) {
  const ucs_status_t status = uct_config_modify(config, name, value);
  return status == UCS_ERR_NO_ELEM ? uct_config_modify(config, (prefix + name).c_str(), value)
                                   : status;
}

Channel::Status to_status(ucs_status_t status) {
  if (status >= 0) return Channel::Status::kStarted;
  const bool is_full = status == UCS_ERR_EXCEEDS_LIMIT || status == UCS_ERR_NO_RESOURCE;
  return is_full ? Channel::Status::kFull : Channel::Status::kFailed;
}

mcast_status_t to_mcast(ucs_status_t status) {
  switch (status) {
    case UCS_OK:
      return MCAST_OK;
    case UCS_ERR_NO_DEVICE:
      return MCAST_ERR_NO_DEVICE;
    case UCS_ERR_NO_MEMORY:
      return MCAST_ERR_NO_MEMORY;
    case UCS_ERR_REJECTED:
      return MCAST_ERR_REJECTED;
    case UCS_ERR_IO_ERROR:
      return MCAST_ERR_FABRIC;
    default:
      return MCAST_ERR_INVALID;
  }
}

Transfer::Result to_result(ucs_status_t status) {
  if (status == UCS_OK) return Transfer::Result::kDone;
  return status == UCS_ERR_NO_MESSAGE ? Transfer::Result::kMistaken : Transfer::Result::kFailed;
}

// UCT's callback gets this; it lies at the start of the transfer's bytes.
template <typename Context>
struct CallbackData {
  Context context;
  Transfer* transfer;
};

template <typename Context>
Context& context_in(Transfer& transfer) {
  static_assert(sizeof(CallbackData<Context>) <= Transfer::kBytes);
  return (new (transfer.bytes) CallbackData<Context>{{}, &transfer})->context;
}

template <typename Context>
Transfer* transfer_of(Context* context) {
  return reinterpret_cast<CallbackData<Context>*>(context)->transfer;
}

}  // namespace

bool OpenUctDomain::load(const std::string& directory, std::string& why) {
  const std::string library = directory + "/libuct_rc_mcast.so";
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    why = std::string("the UCX transport can't be loaded: ") + dlerror();
    return false;
  }
  context_of_ = reinterpret_cast<rc_mcast_context_t>(dlsym(handle, RC_MCAST_CONTEXT));
  group_of_ = reinterpret_cast<rc_mcast_group_t>(dlsym(handle, RC_MCAST_GROUP));
  component_ = find_component();
  if (component_ != nullptr && context_of_ != nullptr && group_of_ != nullptr) return true;
  why = library + " did not register with UCX (was it built for another version?)";
  return false;
}

ucs_status_t OpenUctDomain::make(const char* device) {
  uct_md_config_t* config = nullptr;
  ucs_status_t status = uct_md_config_read(component_, nullptr, nullptr, &config);
  if (status != UCS_OK) return status;
  status = set_variable(config, "MCAST_", "DEVICES", device != nullptr ? device : "any");
  if (status == UCS_OK) status = uct_md_open(component_, kComponent, config, &md_);
  uct_config_release(config);
  if (status == UCS_OK) status = ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async_);
  if (status == UCS_OK) status = uct_worker_create(async_, UCS_THREAD_MODE_SINGLE, &worker_);
  if (status != UCS_OK) return status;
  return uct_md_iface_config_read(md_, kTransport, nullptr, nullptr, &config_);
}

OpenUctDomain::~OpenUctDomain() {
  if (config_ != nullptr) uct_config_release(config_);
  if (worker_ != nullptr) uct_worker_destroy(worker_);
  if (async_ != nullptr) ucs_async_context_destroy(async_);
  if (md_ != nullptr) uct_md_close(md_);
}

bool OpenUctDomain::set(const char* name, const std::string& value) {
  return set_variable(config_, "RC_MCAST_", name, value.c_str()) == UCS_OK;
}

mcast_status_t OpenUctDomain::open_context(const mcast_context_params_t& params,
                                           mcast_context_h* out) {
  const auto milliseconds = [](std::uint32_t number) { return std::to_string(number) + "ms"; };
  const bool is_set = set("FAILURE", "diag") &&  // coll/cepheus reports failures itself
                      set("KEY_FILE", "") && set("GID_INDEX", "-1") && set("PATH_MTU", "0") &&
                      set("MCST_POOL", params.mcst_pool != nullptr ? params.mcst_pool : "") &&
                      set("MRP_PORT", std::to_string(params.mrp_port)) &&
                      set("MAX_EAGER_MEMORY", std::to_string(params.max_eager_memory)) &&
                      set("LINK_OUTAGE", milliseconds(params.link_outage_ms)) &&
                      set("TRAFFIC_CLASS", std::to_string(params.traffic_class)) &&
                      set("SERVICE_LEVEL", std::to_string(params.service_level)) &&
                      set("FLOW_LABEL", std::to_string(params.flow_label)) &&
                      set("REGISTER_TIMEOUT", milliseconds(params.register_timeout_ms)) &&
                      set("REGISTER_SILENCE", milliseconds(params.register_silence_ms)) &&
                      set("PROGRESS_TIMEOUT", milliseconds(params.progress_timeout_ms));
  return is_set ? context_of_(md_, worker_, config_, out) : MCAST_ERR_INVALID;
}

std::unique_ptr<Channel> OpenUctDomain::open_channel(const mcast_group_params_t& params,
                                                     Channel::Arrival arrival, void* arg,
                                                     mcast_status_t& status) {
  status = MCAST_ERR_INVALID;
  const bool is_set =
      set("LANE", params.lane == MCAST_LANE_EAGER ? "eager" : "bulk") &&
      set("MAX_EAGER", std::to_string(params.max_eager)) &&
      set("RECV_DEPTH", std::to_string(params.recv_depth)) &&
      set("SEND_DEPTH", std::to_string(params.send_depth)) &&
      set("LOST_MEMBER",
          params.lost_member == MCAST_LOST_MEMBER_ENDS_GROUP ? "end-group" : "evict");
  if (!is_set) return nullptr;
  uct_iface_params_t open;
  std::memset(&open, 0, sizeof open);
  open.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
  open.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
  open.mode.device.tl_name = kTransport;
  open.mode.device.dev_name = "any";
  uct_iface_h iface = nullptr;
  status = to_mcast(uct_iface_open(md_, worker_, &open, config_, &iface));
  if (status != MCAST_OK) return nullptr;
  auto channel = std::make_unique<UctChannel>(iface, group_of_(iface), arrival, arg);
  status = to_mcast(channel->prepare());
  if (status != MCAST_OK) return nullptr;
  return channel;
}

UctChannel::~UctChannel() {
  if (ep_ != nullptr) uct_ep_destroy(ep_);
  uct_iface_close(iface_);
}

// Progress is the context's, once for all its groups: see Transport::progress().
ucs_status_t UctChannel::prepare() {
  return takes_small() ? uct_iface_set_am_handler(iface_, kSmallId, on_small, this, 0) : UCS_OK;
}

mcast_status_t UctChannel::join() {
  mcast_member_t own;
  const mcast_status_t status = mcast_group_member(group_, &own);
  return status == MCAST_OK ? connect({own}) : status;
}

mcast_status_t UctChannel::lead(const std::vector<mcast_member_t>& members) {
  return connect(members);
}

mcast_status_t UctChannel::connect(const std::vector<mcast_member_t>& members) {
  const auto count = static_cast<std::uint32_t>(members.size());
  std::vector<char> address(sizeof count + count * sizeof(rc_mcast_record_t));
  std::memcpy(address.data(), &count, sizeof count);
  char* end = address.data() + sizeof count;
  for (const mcast_member_t& member : members) {
    const rc_mcast_record_t record{RC_MCAST_RECORD_MAGIC, member};
    std::memcpy(end, &record, sizeof record);
    end += sizeof record;
  }
  uct_ep_params_t params;
  std::memset(&params, 0, sizeof params);
  params.field_mask =
      UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
  params.iface = iface_;
  params.iface_addr = reinterpret_cast<uct_iface_addr_t*>(address.data());
  return to_mcast(uct_ep_create(&params, &ep_));
}

ucs_status_t UctChannel::on_small(void* arg, void* data, std::size_t length, unsigned) {
  static_cast<UctChannel*>(arg)->arrived(data, length);
  return UCS_INPROGRESS;  // kept
}

Channel::Status UctChannel::send_small(mcast_pack_cb_t pack, void* arg) {
  const ssize_t sent = uct_ep_am_bcopy(ep_, kSmallId, pack, arg, 0);
  return sent >= 0 ? Status::kStarted : to_status(static_cast<ucs_status_t>(sent));
}

Channel::Status UctChannel::send(const void* data, std::size_t length, std::uint32_t tag,
                                 Transfer& transfer) {
  transfer.tag = tag;
  auto& completion = context_in<uct_completion_t>(transfer);
  completion.count = 1;
  completion.status = UCS_OK;
  completion.func = [](uct_completion_t* done) {
    Transfer* const owner = transfer_of(done);
    owner->done(owner, to_result(done->status), 0);
  };
  const uct_iov_t iov{const_cast<void*>(data), length, nullptr, 0, 1};
  return to_status(uct_ep_tag_eager_zcopy(ep_, tag, 0, &iov, 1, 0, &completion));
}

Channel::Status UctChannel::receive(void* data, std::size_t length, std::uint32_t tag,
                                    Transfer& transfer) {
  transfer.tag = tag;
  auto& context = context_in<uct_tag_context_t>(transfer);
  context.tag_consumed_cb = [](uct_tag_context_t*) {};
  context.rndv_cb = nullptr;
  context.completed_cb = [](uct_tag_context_t* done, uct_tag_t, uint64_t, size_t bytes, void*,
                            ucs_status_t status) {
    Transfer* const owner = transfer_of(done);
    owner->done(owner, to_result(status), bytes);
  };
  const uct_iov_t iov{data, length, nullptr, 0, 1};
  return to_status(uct_iface_tag_recv_zcopy(iface_, tag, 0xFFFFFFFFu, &iov, 1, &context));
}

}  // namespace cepheus::coll

// UCX's constructors have read its environment already, so its configuration comes too late. Its
// own function takes its signal handlers back, and nothing here asks for its memory hooks.
extern "C" __attribute__((visibility("default"))) std::unique_ptr<cepheus::coll::UctDomain>
cepheus_open_uct_domain(const std::string& directory, const char* device, bool is_ours,
                        std::string& why) {
  using namespace cepheus::coll;
  if (is_ours) ucs_debug_disable_signals();
  auto domain = std::make_unique<OpenUctDomain>();
  if (!domain->load(directory, why)) return nullptr;
  const ucs_status_t status = domain->make(device);
  if (status == UCS_OK) return domain;
  why = std::string("UCX can't open its multicast domain: ") + ucs_status_string(status);
  return nullptr;
}
