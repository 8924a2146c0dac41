#include "collectives/group/uct_channel.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/host_mpi.h"

namespace cepheus::coll {

namespace {

constexpr char kComponent[] = "mcast";

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

Channel::Status to_status(ucs_status_t status) {
  if (status >= 0) return Channel::Status::kStarted;
  const bool is_full = status == UCS_ERR_EXCEEDS_LIMIT || status == UCS_ERR_NO_RESOURCE;
  return is_full ? Channel::Status::kFull : Channel::Status::kFailed;
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

std::unique_ptr<UctDomain> UctDomain::open(const char* device, std::string& why) {
  const char* named = parameters().uct_library;
  const bool is_named = named != nullptr && *named != '\0';
  const std::string library =
      is_named ? named : std::string(component_directory()) + "/../ucx/libuct_rc_mcast.so";
  if (!is_named && access(library.c_str(), F_OK) != 0) {
    why = "rc_mcast was not built: it does not fit UCX " CEPHEUS_UCX_VERSION;
    return nullptr;
  }
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    why = std::string("the UCX transport can't be loaded: ") + dlerror() + "; set " +
          host::parameter("uct_library");
    return nullptr;
  }
  std::unique_ptr<UctDomain> domain(new UctDomain);
  domain->open_interface_ = reinterpret_cast<rc_mcast_open_t>(dlsym(handle, RC_MCAST_OPEN));
  const uct_component_h component = find_component();
  if (component == nullptr || domain->open_interface_ == nullptr) {
    why = library + " did not register with UCX (was it built for another version?)";
    return nullptr;
  }
  uct_md_config_t* config = nullptr;
  ucs_status_t status = uct_md_config_read(component, nullptr, nullptr, &config);
  if (status == UCS_OK) {
    status = uct_config_modify(config, "DEVICES", device);
    if (status == UCS_OK) status = uct_md_open(component, kComponent, config, &domain->md_);
    uct_config_release(config);
  }
  if (status == UCS_OK) status = ucs_async_context_create(UCS_ASYNC_MODE_POLL, &domain->async_);
  if (status == UCS_OK)
    status = uct_worker_create(domain->async_, UCS_THREAD_MODE_SINGLE, &domain->worker_);
  if (status == UCS_OK) return domain;
  why = std::string("UCX can't open its multicast domain: ") + ucs_status_string(status);
  return nullptr;
}

UctDomain::~UctDomain() {
  if (worker_ != nullptr) uct_worker_destroy(worker_);
  if (async_ != nullptr) ucs_async_context_destroy(async_);
  if (md_ != nullptr) uct_md_close(md_);
}

std::unique_ptr<Channel> UctDomain::open_channel(mcast_group_h group, Channel::Arrival arrival,
                                                 void* arg, std::string& why) {
  uct_iface_h iface = nullptr;
  ucs_status_t status = open_interface_(md_, worker_, group, &iface);
  if (status == UCS_OK) {
    auto channel = std::make_unique<UctChannel>(iface, arrival, arg);
    status = channel->connect();
    if (status == UCS_OK) return channel;
  }
  why = std::string("UCX can't open the group: ") + ucs_status_string(status);
  return nullptr;
}

UctChannel::~UctChannel() {
  if (ep_ != nullptr) uct_ep_destroy(ep_);
  uct_iface_close(iface_);
}

// Progress is the context's, once for all its groups: see Transport::progress().
ucs_status_t UctChannel::connect() {
  uct_iface_attr_t attr;
  ucs_status_t status = uct_iface_query(iface_, &attr);
  if (status != UCS_OK) return status;
  std::vector<char> address(attr.iface_addr_len + 1), device_address(attr.device_addr_len + 1);
  status = uct_iface_get_address(iface_, reinterpret_cast<uct_iface_addr_t*>(address.data()));
  if (status != UCS_OK) return status;
  uct_ep_params_t params;
  std::memset(&params, 0, sizeof params);
  params.field_mask =
      UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
  params.iface = iface_;
  params.dev_addr = reinterpret_cast<uct_device_addr_t*>(device_address.data());
  params.iface_addr = reinterpret_cast<uct_iface_addr_t*>(address.data());
  status = uct_ep_create(&params, &ep_);
  if (status != UCS_OK || !takes_small()) return status;
  return uct_iface_set_am_handler(iface_, kSmallId, on_small, this, 0);
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
