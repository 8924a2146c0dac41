// The memory domain of component "mcast": registrations that take hold when a group first uses
// them.
#pragma once

#include <mutex>

#include "ucx-transport/contexts.h"

namespace cepheus::uct {

struct MemoryDomainConfig {
  uct_md_config_t super;
  char* devices;
};
extern ucs_config_field_t memory_domain_config_table[];

// A registered range. UCT registers with the domain, libmcast with a context: the first operation
// of a group brings the two together.
struct MemoryHandle {
  void* address;
  size_t length;
  mcast_context_h context = nullptr;
  mcast_mem_h mem = nullptr;
  std::mutex mutex = {};  // workers of several threads may share a domain
};
// libmcast's handle of `handle` for `context`; null (register for the time of the operation) if it
// belongs to another context or registration fails.
mcast_mem_h mem_for(MemoryHandle* handle, mcast_context_h context);

ucs_status_t open_memory_domain(uct_component_t* component, const char* name,
                                const uct_md_config_t* config, uct_md_h* out);
// The device that UCX_MCAST_DEVICES or the domain's configuration names, else none: then UCP does
// not open an interface on it.
const char* shown_device(uct_md_h md);
// The context of `worker`'s interfaces with these settings, on shown_device().
mcast_status_t open_context(uct_md_h md, uct_worker_h worker, const ContextConfig& config,
                            mcast_context_h* out);

}  // namespace cepheus::uct
