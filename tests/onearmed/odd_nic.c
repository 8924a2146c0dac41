/* Preloaded before a verbs device's library: gives its NIC one fault, ODD_NIC, for fabric_test_test.py.
 *
 *   frozen-psn   ibv_query_qp shows the same PSNs for ever
 *   finite-rnr   the driver limits RNR retries, although 7 means for ever
 *   no-reset     a queue pair stays as it is instead of going to RESET
 *   no-qpn-1     no queue pair connects to QPN 1
 *   ends-early   its process ends when its counters are read
 *   ignored-cnps its counters show no reaction to a congestion notification
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char* fault) {
  const char* chosen = getenv("ODD_NIC");
  return chosen != NULL && strcmp(chosen, fault) == 0;
}

__attribute__((visibility("default"))) int ibv_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr,
                                                        int mask, struct ibv_qp_init_attr* init) {
  int (*next)(struct ibv_qp*, struct ibv_qp_attr*, int, struct ibv_qp_init_attr*) =
      (__typeof__(next))dlsym(RTLD_NEXT, "ibv_query_qp");
  const int error = next(qp, attr, mask, init);
  if (error == 0 && is("frozen-psn")) attr->sq_psn = attr->rq_psn = 0x777777;
  return error;
}

__attribute__((visibility("default"))) int ibv_modify_qp(struct ibv_qp* qp,
                                                         struct ibv_qp_attr* attr, int mask) {
  int (*next)(struct ibv_qp*, struct ibv_qp_attr*, int) =
      (__typeof__(next))dlsym(RTLD_NEXT, "ibv_modify_qp");
  struct ibv_qp_attr changed = *attr;
  if ((mask & IBV_QP_RNR_RETRY) != 0 && is("finite-rnr")) changed.rnr_retry = 2;
  if ((mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_RESET && is("no-reset")) return 0;
  if ((mask & IBV_QP_DEST_QPN) != 0 && attr->dest_qp_num == 1 && is("no-qpn-1")) return EINVAL;
  return next(qp, &changed, mask);
}

__attribute__((visibility("default"))) size_t cepheus_roce_counters(char* buffer, size_t size) {
  size_t (*next)(char*, size_t) = (__typeof__(next))dlsym(RTLD_NEXT, "cepheus_roce_counters");
  if (is("ends-early")) _exit(1);
  const size_t length = next(buffer, size);
  char* const cuts = is("ignored-cnps") && size > 0 ? strstr(buffer, "rate_cuts ") : NULL;
  for (char* digit = cuts == NULL ? NULL : cuts + strlen("rate_cuts ");
       digit != NULL && *digit >= '0' && *digit <= '9'; ++digit) {
    *digit = '0';
  }
  return length;
}
