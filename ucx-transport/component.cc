// UCT component "mcast" with its one transport rc_mcast, registered when the library is loaded. Two
// checks come first: libuct's class sizes equal those of uct_layout.h, and libucp reports the minor
// version that this was built for. If one fails, a warning names the reason, and nothing is
// registered.
//
// Connection managers and remote keys are unsupported. Without UCX_MCAST_DEVICES the component
// shows no device, so UCP opens no interface on it.
#include <dlfcn.h>
#include <mcast/uct.h>

#include <cstdio>
#include <string>

#include "ucx-transport/interface.h"
#include "ucx-transport/memory_domain.h"

namespace {

using namespace cepheus::uct;

extern "C" {

ucs_status_t cm_open(uct_component_t*, uct_worker_h, const uct_cm_config_t*, uct_cm_h*) {
  return UCS_ERR_UNSUPPORTED;
}
ucs_status_t rkey_unpack(uct_component_t*, const void*, uct_rkey_t*, void**) {
  return UCS_ERR_UNSUPPORTED;
}
ucs_status_t rkey_ptr(uct_component_t*, uct_rkey_t, void*, uint64_t, void**) {
  return UCS_ERR_UNSUPPORTED;
}
ucs_status_t rkey_release(uct_component_t*, uct_rkey_t, void*) { return UCS_OK; }
#if CEPHEUS_UCX_1_18
ucs_status_t rkey_compare(uct_component_t*, uct_rkey_t, uct_rkey_t, const void*, int*) {
  return UCS_ERR_UNSUPPORTED;
}
#endif
void md_vfs_init(uct_md_h) {}

ucs_status_t query_devices(uct_md_h md, uct_tl_device_resource_t** devices, unsigned* count) {
  const char* device = shown_device(md);
  if (*device == '\0') {
    *devices = nullptr;
    *count = 0;
    return UCS_OK;
  }
  return uct_single_device_resource(md, device, UCT_DEVICE_TYPE_NET, UCS_SYS_DEVICE_ID_UNKNOWN,
                                    devices, count);
}

}  // extern "C"

uct_component_t component{};
uct_tl_t transport{};

void describe() {
  snprintf(component.name, sizeof component.name, "mcast");
  component.query_md_resources = uct_md_query_single_md_resource;
  component.md_open = open_memory_domain;
  component.cm_open = cm_open;
  component.rkey_unpack = rkey_unpack;
  component.rkey_ptr = rkey_ptr;
  component.rkey_release = rkey_release;
#if CEPHEUS_UCX_1_18
  component.rkey_compare = rkey_compare;
#endif
  component.md_vfs_init = md_vfs_init;
  component.md_config.name = "Multicast memory domain";
  component.md_config.prefix = "MCAST_";
  component.md_config.table = memory_domain_config_table;
  component.md_config.size = sizeof(MemoryDomainConfig);
  component.cm_config.name = "Multicast connection manager (none)";
  component.cm_config.prefix = "";
  ucs_list_head_init(&component.tl_list);

  snprintf(transport.name, sizeof transport.name, "rc_mcast");
  transport.query_devices = query_devices;
  transport.iface_open = UCS_CLASS_NEW_FUNC_NAME(uct_rc_mcast_iface_t);
  transport.config.name = "rc_mcast transport";
  transport.config.prefix = "RC_MCAST_";
  transport.config.table = interface_config_table;
  transport.config.size = sizeof(InterfaceConfig);
}

// libuct exports its class descriptors: their sizes show whether its struct layouts are those of
// uct_layout.h. A build with statistics has others.
bool layout_matches() {
  struct {
    const char* name;
    size_t theirs, ours;
  } const checks[] = {
      {"uct_iface_t", uct_iface_t_class.size, sizeof(uct_iface_t)},
      {"uct_base_iface_t", uct_base_iface_t_class.size, sizeof(uct_base_iface_t)},
      {"uct_base_ep_t", uct_base_ep_t_class.size, sizeof(uct_base_ep_t)},
  };
  for (const auto& check : checks) {
    if (check.theirs != check.ours) {
      ucs_warn(
          "rc_mcast is not registered, because libuct's %s has %zu bytes and not %zu; install a "
          "UCX "
          "%u.%u that was built without statistics",
          check.name, check.theirs, check.ours, UCT_VERNO_MAJOR, UCT_VERNO_MINOR);
      return false;
    }
  }
  return true;
}

// libuct has no version function. libucp belongs to the same release, lies beside it, and has one.
void* version_function() {
  constexpr char kName[] = "ucp_get_version";
  if (void* const loaded = dlsym(RTLD_DEFAULT, kName); loaded != nullptr) return loaded;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&uct_component_register), &info) == 0) return nullptr;
  std::string path = info.dli_fname;
  path.replace(path.rfind('/') + 1, std::string::npos, "libucp.so.0");
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  return library != nullptr ? dlsym(library, kName) : nullptr;
}

// UCX moves slots of its tables from one minor version to the next, and sizes may stay the same.
bool version_matches() {
  void* const found = version_function();
  if (found == nullptr) {
    ucs_warn(
        "rc_mcast is not registered, because the version of libuct is unknown; install libucp.so.0 "
        "of the same UCX beside it");
    return false;
  }
  unsigned major = 0, minor = 0, release = 0;
  reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(found)(&major, &minor, &release);
  if (major == UCT_VERNO_MAJOR && minor == UCT_VERNO_MINOR) return true;
  ucs_warn(
      "rc_mcast is not registered, because it is built for UCX %u.%u and this is UCX %u.%u.%u; "
      "build Cepheus on a host with UCX 1.13 or 1.18, and run it with that version",
      UCT_VERNO_MAJOR, UCT_VERNO_MINOR, major, minor, release);
  return false;
}

bool registered = false;

__attribute__((constructor)) void load() {
  if (!layout_matches() || !version_matches()) return;
  describe();
  uct_component_register(&component);
  uct_tl_register(&component, &transport);
  registered = true;
}

__attribute__((destructor)) void unload() {
  if (!registered) return;
  uct_tl_unregister(&transport);
  uct_component_unregister(&component);
  ucs_list_del(&component.list);  // UCX leaves the component in its list
}

}  // namespace

mcast_status_t cepheus_uct_rc_mcast_context(uct_md_h md, uct_worker_h worker,
                                            const uct_iface_config_t* config,
                                            mcast_context_h* out) {
  return open_context(md, worker, reinterpret_cast<const InterfaceConfig*>(config)->context, out);
}

mcast_group_h cepheus_uct_rc_mcast_group(uct_iface_h iface) {
  return interface_of(iface)->state->group;
}

int cepheus_uct_rc_mcast_registered(void) { return registered; }
