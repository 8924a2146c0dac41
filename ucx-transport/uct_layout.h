/* What a UCT transport needs of libuct that Debian's libucx-dev does not install: struct layouts
 * and prototypes.
 *
 * UCX keeps these in its private headers, and moves them from one minor version to the next. They
 * are declared here as UCX 1.13 and 1.18 built without statistics lay them out. component.cc
 * compares the version and the sizes that libuct itself exports, and refuses to register the
 * transport when they differ. Nothing here is called before that check. */
#pragma once

#include <uct/api/uct.h>
/* uct.h first: the next ones insist on it. */
#include <string.h>
#include <ucs/config/parser.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue_types.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/stubs.h>
#include <ucs/type/class.h>
#include <uct/api/tl.h>

#if UCT_API == UCT_VERSION(1, 18)
#define CEPHEUS_UCX_1_18 1
#elif UCT_API == UCT_VERSION(1, 13)
#define CEPHEUS_UCX_1_18 0
#else
#error "rc_mcast knows the layouts of UCX 1.13 and 1.18 only"
#endif

extern "C" {

/* --- memory domains and components
 * ------------------------------------------------------------------------------ */

typedef struct {
  uint64_t field_mask;
  unsigned flags;
  uct_mem_h memh;
  uct_completion_t* comp;
} uct_md_mem_dereg_params_t;

typedef struct {
  uint64_t field_mask;
  unsigned flags;
} uct_md_mkey_pack_params_t;

#if CEPHEUS_UCX_1_18
typedef struct {
  uint64_t field_mask;
  uint64_t max_alloc;
  size_t max_reg;
  uint64_t flags;
  uint64_t reg_mem_types, reg_nonblock_mem_types, cache_mem_types, gva_mem_types;
  uint64_t detect_mem_types, alloc_mem_types, access_mem_types, dmabuf_mem_types;
  ucs_linear_func_t reg_cost;
  /* Further fields belong to uct_md_base_md_query() alone. */
} uct_md_attr_v2_t;

typedef struct uct_md_mem_reg_params uct_md_mem_reg_params_t;
typedef struct uct_md_mem_attach_params uct_md_mem_attach_params_t;
typedef uct_md_attr_v2_t cepheus_md_attr_t;
typedef const uct_md_mem_reg_params_t* cepheus_mem_reg_options_t;
#else
typedef uct_md_attr_t cepheus_md_attr_t;
typedef unsigned cepheus_mem_reg_options_t;
#endif

typedef struct uct_md_ops {
  void (*close)(uct_md_h);
  ucs_status_t (*query)(uct_md_h, cepheus_md_attr_t*);
  ucs_status_t (*mem_alloc)(uct_md_h, size_t*, void**, ucs_memory_type_t, unsigned, const char*,
                            uct_mem_h*);
  ucs_status_t (*mem_free)(uct_md_h, uct_mem_h);
  ucs_status_t (*mem_advise)(uct_md_h, uct_mem_h, void*, size_t, unsigned);
  ucs_status_t (*mem_reg)(uct_md_h, void*, size_t, cepheus_mem_reg_options_t, uct_mem_h*);
  ucs_status_t (*mem_dereg)(uct_md_h, const uct_md_mem_dereg_params_t*);
  ucs_status_t (*mem_query)(uct_md_h, const void*, size_t, uct_md_mem_attr_t*);
#if CEPHEUS_UCX_1_18
  ucs_status_t (*mkey_pack)(uct_md_h, uct_mem_h, void*, size_t, const uct_md_mkey_pack_params_t*,
                            void*);
  ucs_status_t (*mem_attach)(uct_md_h, const void*, uct_md_mem_attach_params_t*, uct_mem_h*);
#else
  ucs_status_t (*mkey_pack)(uct_md_h, uct_mem_h, const uct_md_mkey_pack_params_t*, void*);
  int (*is_sockaddr_accessible)(uct_md_h, const ucs_sock_addr_t*, uct_sockaddr_accessibility_t);
#endif
  ucs_status_t (*detect_memory_type)(uct_md_h, const void*, size_t, ucs_memory_type_t*);
} uct_md_ops_t;

typedef struct uct_component uct_component_t;

struct uct_md {
  uct_md_ops_t* ops;
  uct_component_t* component;
};

struct uct_md_config {
  char unused;
};

struct uct_component {
  char name[UCT_COMPONENT_NAME_MAX];
  ucs_status_t (*query_md_resources)(uct_component_t*, uct_md_resource_desc_t**, unsigned*);
  ucs_status_t (*md_open)(uct_component_t*, const char*, const uct_md_config_t*, uct_md_h*);
  ucs_status_t (*cm_open)(uct_component_t*, uct_worker_h, const uct_cm_config_t*, uct_cm_h*);
  ucs_status_t (*rkey_unpack)(uct_component_t*, const void*, uct_rkey_t*, void**);
  ucs_status_t (*rkey_ptr)(uct_component_t*, uct_rkey_t, void*, uint64_t, void**);
  ucs_status_t (*rkey_release)(uct_component_t*, uct_rkey_t, void*);
#if CEPHEUS_UCX_1_18
  ucs_status_t (*rkey_compare)(uct_component_t*, uct_rkey_t, uct_rkey_t, const void*, int*);
#endif
  ucs_config_global_list_entry_t md_config;
  ucs_config_global_list_entry_t cm_config;
  ucs_list_link_t tl_list;
  ucs_list_link_t list;
  uint64_t flags;
  void (*md_vfs_init)(uct_md_h);
};

/* --- transports and interfaces
 * ---------------------------------------------------------------------------------- */

typedef struct {
  char name[UCT_DEVICE_NAME_MAX];
  uct_device_type_t type;
  ucs_sys_device_t sys_device;
} uct_tl_device_resource_t;

typedef struct uct_tl {
  char name[UCT_TL_NAME_MAX];
  ucs_status_t (*query_devices)(uct_md_h, uct_tl_device_resource_t**, unsigned*);
  ucs_status_t (*iface_open)(uct_md_h, uct_worker_h, const uct_iface_params_t*,
                             const uct_iface_config_t*, uct_iface_h*);
  ucs_config_global_list_entry_t config;
  ucs_list_link_t list;
} uct_tl_t;

struct uct_iface_config {
  struct {
    uct_alloc_method_t* methods;
    unsigned count;
  } alloc_methods;
  int failure;
  size_t max_num_eps;
};

typedef struct {
  uct_am_callback_t cb;
  void* arg;
  uint32_t flags;
} uct_am_handler_t;

#if CEPHEUS_UCX_1_18
typedef struct {
  uint64_t field_mask;
  const uct_device_addr_t* device_addr;
  const uct_iface_addr_t* iface_addr; /* if field_mask has the next bit */
#define CEPHEUS_REACHABLE_FIELD_IFACE_ADDR UCS_BIT(1)
  char* info_string;
  size_t info_string_length;
  int scope;
} uct_iface_is_reachable_params_t;

typedef struct uct_iface_internal_ops {
  ucs_status_t (*iface_estimate_perf)(uct_iface_h, void* perf_attr);
  void (*iface_vfs_refresh)(uct_iface_h);
  ucs_status_t (*ep_query)(uct_ep_h, void* ep_attr);
  ucs_status_t (*ep_invalidate)(uct_ep_h, unsigned flags);
  ucs_status_t (*ep_connect_to_ep_v2)(uct_ep_h, const uct_device_addr_t*, const uct_ep_addr_t*,
                                      const void* params);
  int (*iface_is_reachable_v2)(uct_iface_h, const uct_iface_is_reachable_params_t*);
  int (*ep_is_connected)(uct_ep_h, const void* params);
} uct_iface_internal_ops_t;
#else
typedef struct uct_iface_internal_ops uct_iface_internal_ops_t;
#endif

typedef struct uct_base_iface {
  uct_iface_t super;
  uct_iface_internal_ops_t* internal_ops;
  uct_md_h md;
  void* worker; /* uct_priv_worker_t */
  uct_am_handler_t am[UCT_AM_ID_MAX];
  uct_am_tracer_t am_tracer;
  void* am_tracer_arg;
  uct_error_handler_t err_handler;
  void* err_handler_arg;
  uint32_t err_handler_flags;
  struct {
    uct_worker_cb_id_t id;
    uint32_t refcount;
  } prog;
  unsigned progress_flags;
  struct {
    unsigned num_alloc_methods;
    uct_alloc_method_t alloc_methods[UCT_ALLOC_METHOD_LAST];
    ucs_log_level_t failure_level;
    size_t max_num_eps;
  } config;
} uct_base_iface_t;

typedef struct {
  uct_ep_t super;
} uct_base_ep_t;

UCS_CLASS_DECLARE(uct_base_iface_t, uct_iface_ops_t*, uct_iface_internal_ops_t*, uct_md_h,
                  uct_worker_h, const uct_iface_params_t*, const uct_iface_config_t*)
UCS_CLASS_DECLARE(uct_base_ep_t, uct_base_iface_t*)

/* --- what libuct exports
 * ---------------------------------------------------------------------------------------- */

extern ucs_class_t uct_iface_t_class;
#if CEPHEUS_UCX_1_18
void uct_md_base_md_query(uct_md_attr_v2_t*);
int uct_iface_is_reachable_v2(uct_iface_h, const uct_iface_is_reachable_params_t*);
ucs_status_t uct_base_iface_estimate_perf(uct_iface_h, void* perf_attr);
int uct_base_ep_is_connected(uct_ep_h, const void* params);
#else
extern uct_iface_internal_ops_t uct_base_iface_internal_ops;
#endif
extern ucs_config_field_t uct_md_config_table[];
extern ucs_config_field_t uct_iface_config_table[];

void uct_component_register(uct_component_t*);
void uct_component_unregister(uct_component_t*);
void uct_tl_register(uct_component_t*, uct_tl_t*);
void uct_tl_unregister(uct_tl_t*);
ucs_status_t uct_md_query_single_md_resource(uct_component_t*, uct_md_resource_desc_t**, unsigned*);
ucs_status_t uct_single_device_resource(uct_md_h, const char*, uct_device_type_t, ucs_sys_device_t,
                                        uct_tl_device_resource_t**, unsigned*);
void uct_base_iface_query(uct_base_iface_t*, uct_iface_attr_t*);
void uct_base_iface_progress_enable(uct_iface_h, unsigned);
void uct_base_iface_progress_disable(uct_iface_h, unsigned);
ucs_status_t uct_base_iface_fence(uct_iface_h, unsigned);
ucs_status_t uct_base_ep_fence(uct_ep_h, unsigned);

}  // extern "C"
