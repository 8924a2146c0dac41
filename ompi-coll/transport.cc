#include "ompi-coll/transport.h"

#include <dlfcn.h>

#include <cstring>
#include <memory>

#include "ompi-coll/parameters.h"

extern "C" {
// Exported by libucs, declared in a header that libucx-dev does not install.
ucs_status_t ucs_async_context_create(ucs_async_mode_t mode, ucs_async_context_t** async);
void ucs_async_context_destroy(ucs_async_context_t* async);
}

namespace cepheus::coll {

namespace {

constexpr char kComponent[] = "mcast";
constexpr char kTransport[] = "rc_mcast";

std::string default_uct_library() {
  return std::string(component_directory()) + "/../ucx/libuct_rc_mcast.so";
}

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

mcast_context_params_t context_params() {
  const Parameters& p = parameters();
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  if (p.device != nullptr && *p.device != '\0') params.device = p.device;
  if (p.mcst_pool != nullptr && *p.mcst_pool != '\0') params.mcst_pool = p.mcst_pool;
  params.mrp_port = static_cast<uint16_t>(p.mrp_port);
  params.register_timeout_ms = static_cast<uint32_t>(p.register_timeout_ms);
  params.max_eager_memory = static_cast<size_t>(p.max_eager_memory);
  params.progress_timeout_ms = static_cast<uint32_t>(p.watchdog_ms);
  return params;
}

}  // namespace

Transport& Transport::instance() {
  static Transport transport;
  return transport;
}

mcast_status_t Transport::open(std::string& why, bool again) {
  std::lock_guard<std::mutex> guard(open_mutex_);
  if (outcome_ == MCAST_OK) {
    mcast_context_attr_t attr;
    if (mcast_context_query(context_, &attr) == MCAST_OK && attr.is_up != 0) return MCAST_OK;
    if (groups_.load() > 1) {
      why = "the fabric's port is down, and groups of other communicators still hold it";
      return MCAST_ERR_NO_DEVICE;
    }
    tried_ = false;
  }
  if (!tried_ || again) {
    close();
    tried_ = true;
    why_.clear();
    outcome_ = open_once(why_);
  }
  why = why_;
  return outcome_;
}

uint32_t Transport::host_address() {
  std::lock_guard<std::mutex> guard(open_mutex_);
  if (outcome_ != MCAST_OK && outcome_ != MCAST_ERR_BUSY) return 0;
  mcast_context_attr_t attr;
  const mcast_context_params_t params = context_params();
  const mcast_status_t status = outcome_ == MCAST_OK ? mcast_context_query(context_, &attr)
                                                     : mcast_device_query(&params, &attr);
  return status == MCAST_OK ? attr.ipv4 : 0;
}

mcast_status_t Transport::open_once(std::string& why) {
  const mcast_context_params_t params = context_params();
  const mcast_status_t status = mcast_context_create(&params, &context_);
  if (status != MCAST_OK) {
    why = mcast_last_error();
    context_ = nullptr;
    return status;
  }
  return open_uct(why);
}

mcast_status_t Transport::open_uct(std::string& why) {
  const char* named = parameters().uct_library;
  const std::string library = named != nullptr && *named != '\0' ? named : default_uct_library();
  uct_component_h component = find_component();
  if (component == nullptr) {
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      why = std::string("the UCX transport can't be loaded: ") + dlerror() +
            "; set coll_cepheus_uct_library";
      return MCAST_ERR_NO_DEVICE;
    }
    component = find_component();
  }
  if (component == nullptr) {
    why = library + " did not register with UCX (was it built for another version?)";
    return MCAST_ERR_NO_DEVICE;
  }
  mcast_context_attr_t attr;
  if (mcast_context_query(context_, &attr) != MCAST_OK) {
    why = mcast_last_error();
    return MCAST_ERR_NO_DEVICE;
  }
  device_ = attr.device;

  uct_md_config_t* config = nullptr;
  ucs_status_t status = uct_md_config_read(component, nullptr, nullptr, &config);
  if (status == UCS_OK) {
    status = uct_config_modify(config, "DEVICES", device_.c_str());
    if (status == UCS_OK) status = uct_md_open(component, kComponent, config, &md_);
    uct_config_release(config);
  }
  if (status == UCS_OK) status = ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async_);
  if (status == UCS_OK) status = uct_worker_create(async_, UCS_THREAD_MODE_SINGLE, &worker_);
  if (status != UCS_OK) {
    why = std::string("UCX can't open its multicast domain: ") + ucs_status_string(status);
    return MCAST_ERR_NO_DEVICE;
  }
  return MCAST_OK;
}

std::uint64_t Transport::registered_bytes() {
  std::lock_guard<std::mutex> guard(mutex_);
  mcast_context_attr_t attr;
  if (context_ == nullptr || mcast_context_query(context_, &attr) != MCAST_OK) return 0;
  return attr.registered_bytes;
}

void Transport::close() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (worker_ != nullptr) uct_worker_destroy(worker_);
  if (async_ != nullptr) ucs_async_context_destroy(async_);
  if (md_ != nullptr) uct_md_close(md_);
  if (context_ != nullptr) mcast_context_destroy(context_);
  worker_ = nullptr;
  async_ = nullptr;
  md_ = nullptr;
  context_ = nullptr;
}

ucs_status_t Transport::open_group(uint32_t group_id, Handles& out) {
  uct_iface_config_t* config = nullptr;
  ucs_status_t status = uct_md_iface_config_read(md_, kTransport, nullptr, nullptr, &config);
  if (status != UCS_OK) return status;
  status = uct_config_modify(config, "GROUP", std::to_string(group_id).c_str());
  if (status == UCS_OK) {
    uct_iface_params_t params;
    std::memset(&params, 0, sizeof params);
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                        UCT_IFACE_PARAM_FIELD_STATS_ROOT | UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                        UCT_IFACE_PARAM_FIELD_CPU_MASK;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = kTransport;
    params.mode.device.dev_name = device_.c_str();
    status = uct_iface_open(md_, worker_, &params, config, &out.iface);
  }
  uct_config_release(config);
  if (status != UCS_OK) return status;
  uct_iface_progress_enable(out.iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);

  uct_iface_attr_t attr;
  status = uct_iface_query(out.iface, &attr);
  if (status == UCS_OK) {
    auto address = std::make_unique<char[]>(attr.iface_addr_len + 1);
    auto device_address = std::make_unique<char[]>(attr.device_addr_len + 1);
    uct_ep_params_t params;
    std::memset(&params, 0, sizeof params);
    params.field_mask =
        UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface = out.iface;
    params.dev_addr = reinterpret_cast<uct_device_addr_t*>(device_address.get());
    params.iface_addr = reinterpret_cast<uct_iface_addr_t*>(address.get());
    status = uct_iface_get_address(out.iface, reinterpret_cast<uct_iface_addr_t*>(address.get()));
    if (status == UCS_OK) status = uct_ep_create(&params, &out.ep);
  }
  if (status != UCS_OK) close_group(out);
  return status;
}

void Transport::close_group(Handles& handles) {
  if (handles.ep != nullptr) uct_ep_destroy(handles.ep);
  if (handles.iface != nullptr) uct_iface_close(handles.iface);
  handles = {};
}

unsigned Transport::progress() {
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock || worker_ == nullptr) return 0;
  return uct_worker_progress(worker_);
}

}  // namespace cepheus::coll
