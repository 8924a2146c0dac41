// Features that this NIC lacks: refused for our device, passed on for others.
#include "nic-emulator/verbs/device/context.h"
#include "nic-emulator/verbs/next_library.h"

using namespace cepheus::verbs;

// --- Enhanced connection establishment: options between two NICs of one vendor.

CEPHEUS_EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_set_ece, qp, ece);
  return refuse_call(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_query_ece, qp, ece);
  *ece = {};
  return refuse_call(EOPNOTSUPP);
}

// --- Multicast of unreliable datagrams.

CEPHEUS_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_attach_mcast, qp, gid, lid);
  return refuse_call(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_detach_mcast, qp, gid, lid);
  return refuse_call(EOPNOTSUPP);
}

// --- Objects of other processes: there is no kernel to share them through.

CEPHEUS_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_import_pd, context, handle);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  if (!is_ours(pd->context)) call_next<decltype(ibv_unimport_pd)>("ibv_unimport_pd", pd);
}

CEPHEUS_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_import_mr, pd, handle);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  if (!is_ours(mr->context)) call_next<decltype(ibv_unimport_mr)>("ibv_unimport_mr", mr);
}

CEPHEUS_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_import_dm, context, handle);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  if (!is_ours(dm->context)) call_next<decltype(ibv_unimport_dm)>("ibv_unimport_dm", dm);
}
