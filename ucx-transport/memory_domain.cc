// mem_reg() only notes the range. mem_for() registers it with the context of the first operation
// that uses it, and the handle belongs to that context for good. Host memory only. Packed keys,
// attached memory and detection of memory types are unsupported. Each handle has a lock; libmcast
// registers under it.
#include "ucx-transport/memory_domain.h"

#include <climits>
#include <new>
#include <string>

namespace cepheus::uct {

ucs_config_field_t memory_domain_config_table[] = {
    {"", "", nullptr, offsetof(MemoryDomainConfig, super),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},
    {"DEVICES", "",
     "Show rc_mcast on this verbs device (any: the nearest; empty: none, so that only programs "
     "that "
     "ask for it see it)",
     offsetof(MemoryDomainConfig, devices), UCS_CONFIG_TYPE_STRING},
    {},
};

namespace {

struct MemoryDomain {
  uct_md_t super;
  std::string device;
  Contexts contexts;
};

MemoryDomain& domain_of(uct_md_h md) { return *reinterpret_cast<MemoryDomain*>(md); }

void close_domain(uct_md_h md) { delete &domain_of(md); }

// The caller clears nothing: every field must be set.
#if CEPHEUS_UCX_1_18
ucs_status_t query(uct_md_h, uct_md_attr_v2_t* attr) {
  uct_md_base_md_query(attr);
  attr->max_reg = ULONG_MAX;
  attr->flags = UCT_MD_FLAG_REG;
  attr->reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->reg_cost = ucs_linear_func_make(1e-6, 0);
  return UCS_OK;
}
#else
ucs_status_t query(uct_md_h, uct_md_attr_t* attr) {
  attr->cap.flags = UCT_MD_FLAG_REG;
  attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->cap.alloc_mem_types = 0;
  attr->cap.detect_mem_types = 0;
  attr->cap.max_alloc = 0;
  attr->cap.max_reg = ULONG_MAX;
  attr->rkey_packed_size = 0;
  attr->reg_cost = ucs_linear_func_make(1e-6, 0);
  memset(&attr->local_cpus, 0xff, sizeof attr->local_cpus);
  return UCS_OK;
}
#endif

ucs_status_t mem_reg(uct_md_h, void* address, size_t length, cepheus_mem_reg_options_t,
                     uct_mem_h* out) {
  auto* handle = new (std::nothrow) MemoryHandle{address, length};
  if (handle == nullptr) return UCS_ERR_NO_MEMORY;
  *out = handle;
  return UCS_OK;
}

ucs_status_t mem_dereg(uct_md_h, const uct_md_mem_dereg_params_t* params) {
  auto* handle = static_cast<MemoryHandle*>(params->memh);
  if (handle == nullptr) return UCS_ERR_INVALID_PARAM;
  if (handle->mem != nullptr) mcast_mem_deregister(handle->mem);
  delete handle;
  return UCS_OK;
}

// Keys travel between NICs and switches only.
#if CEPHEUS_UCX_1_18
ucs_status_t mkey_pack(uct_md_h, uct_mem_h, void*, size_t, const uct_md_mkey_pack_params_t*,
                       void*) {
  return UCS_ERR_UNSUPPORTED;
}
ucs_status_t mem_attach(uct_md_h, const void*, uct_md_mem_attach_params_t*, uct_mem_h*) {
  return UCS_ERR_UNSUPPORTED;
}
#else
ucs_status_t mkey_pack(uct_md_h, uct_mem_h, const uct_md_mkey_pack_params_t*, void*) {
  return UCS_ERR_UNSUPPORTED;
}
#endif

ucs_status_t detect(uct_md_h, const void*, size_t, ucs_memory_type_t*) {
  return UCS_ERR_UNSUPPORTED;
}

}  // namespace

mcast_mem_h mem_for(MemoryHandle* handle, mcast_context_h context) {
  if (handle == nullptr) return nullptr;
  const std::lock_guard lock(handle->mutex);
  if (handle->mem == nullptr) {
    if (mcast_mem_register(context, handle->address, handle->length, &handle->mem) != MCAST_OK) {
      handle->mem = nullptr;
      return nullptr;
    }
    handle->context = context;
  }
  return handle->context == context ? handle->mem : nullptr;
}

ucs_status_t open_memory_domain(uct_component_t* component, const char*,
                                const uct_md_config_t* config, uct_md_h* out) {
  static uct_md_ops_t ops = [] {
    uct_md_ops_t o{};
    o.close = close_domain;
    o.query = query;
    o.mem_reg = mem_reg;
    o.mem_dereg = mem_dereg;
    o.mkey_pack = mkey_pack;
#if CEPHEUS_UCX_1_18
    o.mem_attach = mem_attach;
#endif
    o.detect_memory_type = detect;
    return o;
  }();
  auto* md = new (std::nothrow) MemoryDomain{};
  if (md == nullptr) return UCS_ERR_NO_MEMORY;
  md->super.ops = &ops;
  md->super.component = component;
  const char* devices = reinterpret_cast<const MemoryDomainConfig*>(config)->devices;
  md->device = devices != nullptr ? devices : "";
  *out = &md->super;
  return UCS_OK;
}

const char* shown_device(uct_md_h md) { return domain_of(md).device.c_str(); }

mcast_status_t open_context(uct_md_h md, uct_worker_h worker, const ContextConfig& config,
                            mcast_context_h* out) {
  MemoryDomain& domain = domain_of(md);
  const std::string& device = domain.device;
  return domain.contexts.open(worker, device == "any" ? "" : device, config, out);
}

}  // namespace cepheus::uct
