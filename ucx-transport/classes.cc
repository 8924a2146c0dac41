// The UCS classes of rc_mcast: construction in UCX's way, work in interface.cc and endpoint.cc.
#include "ucx-transport/interface.h"

extern "C" {

UCS_CLASS_INIT_FUNC(uct_rc_mcast_iface_t, uct_md_h md, uct_worker_h worker,
                    const uct_iface_params_t* params, const uct_iface_config_t* config) {
  static uct_iface_ops_t ops = cepheus::uct::make_interface_ops();
  UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &ops, cepheus::uct::internal_ops(), md, worker,
                            params, config);
  const auto* own = reinterpret_cast<const cepheus::uct::InterfaceConfig*>(config);
  return cepheus::uct::open_state(self->super, worker, *params, *own, &self->state);
}

UCS_CLASS_CLEANUP_FUNC(uct_rc_mcast_iface_t) {
  uct_base_iface_progress_disable(&self->super.super, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
  cepheus::uct::close_state(self->state);
}

UCS_CLASS_DEFINE(uct_rc_mcast_iface_t, uct_base_iface_t)
UCS_CLASS_DEFINE_NEW_FUNC(uct_rc_mcast_iface_t, uct_iface_t, uct_md_h, uct_worker_h,
                          const uct_iface_params_t*, const uct_iface_config_t*)
UCS_CLASS_DEFINE_DELETE_FUNC(uct_rc_mcast_iface_t, uct_iface_t)

UCS_CLASS_INIT_FUNC(uct_rc_mcast_ep_t, const uct_ep_params_t* params) {
  auto* iface = reinterpret_cast<uct_rc_mcast_iface_t*>(params->iface);
  UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);
  return cepheus::uct::join_group(params);
}

UCS_CLASS_CLEANUP_FUNC(uct_rc_mcast_ep_t) {
  cepheus::uct::leave_group(*cepheus::uct::interface_of(&self->super.super)->state);
}

UCS_CLASS_DEFINE(uct_rc_mcast_ep_t, uct_base_ep_t)
UCS_CLASS_DEFINE_NEW_FUNC(uct_rc_mcast_ep_t, uct_ep_t, const uct_ep_params_t*)
UCS_CLASS_DEFINE_DELETE_FUNC(uct_rc_mcast_ep_t, uct_ep_t)

}  // extern "C"
