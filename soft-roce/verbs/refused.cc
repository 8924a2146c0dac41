// What this NIC does not do: refused for our device, passed on for others.
#include "soft-roce/verbs/context.h"
#include "soft-roce/verbs/next_library.h"

using namespace cepheus::rnic;

// --- Shared receive queues.

CEPHEUS_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  if (!is_ours(pd->context)) return call_next<decltype(ibv_create_srq)>("ibv_create_srq", pd, init);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  if (!is_ours(srq->context)) {
    return call_next<decltype(ibv_modify_srq)>("ibv_modify_srq", srq, attributes, mask);
  }
  return refuse_call(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  if (!is_ours(srq->context)) {
    return call_next<decltype(ibv_query_srq)>("ibv_query_srq", srq, attributes);
  }
  return refuse_call(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  if (!is_ours(srq->context)) return call_next<decltype(ibv_destroy_srq)>("ibv_destroy_srq", srq);
  return refuse_call(EOPNOTSUPP);
}

// --- Enhanced connection establishment: options between two NICs of one vendor.

CEPHEUS_EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!is_ours(qp->context)) return call_next<decltype(ibv_set_ece)>("ibv_set_ece", qp, ece);
  return refuse_call(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!is_ours(qp->context)) return call_next<decltype(ibv_query_ece)>("ibv_query_ece", qp, ece);
  *ece = {};
  return refuse_call(EOPNOTSUPP);
}

// --- Multicast of unreliable datagrams.

CEPHEUS_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (!is_ours(qp->context)) {
    return call_next<decltype(ibv_attach_mcast)>("ibv_attach_mcast", qp, gid, lid);
  }
  return refuse_call(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (!is_ours(qp->context)) {
    return call_next<decltype(ibv_detach_mcast)>("ibv_detach_mcast", qp, gid, lid);
  }
  return refuse_call(EOPNOTSUPP);
}

// --- Objects of other processes: there is no kernel to share them through.

CEPHEUS_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  if (!is_ours(context))
    return call_next<decltype(ibv_import_pd)>("ibv_import_pd", context, handle);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  if (!is_ours(pd->context)) call_next<decltype(ibv_unimport_pd)>("ibv_unimport_pd", pd);
}

CEPHEUS_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  if (!is_ours(pd->context)) return call_next<decltype(ibv_import_mr)>("ibv_import_mr", pd, handle);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  if (!is_ours(mr->context)) call_next<decltype(ibv_unimport_mr)>("ibv_unimport_mr", mr);
}

CEPHEUS_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  if (!is_ours(context))
    return call_next<decltype(ibv_import_dm)>("ibv_import_dm", context, handle);
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  if (!is_ours(dm->context)) call_next<decltype(ibv_unimport_dm)>("ibv_unimport_dm", dm);
}
