// A plug-in of a library that uses verbs: its host loads and unloads it, and libibverbs with it.
#include <infiniband/verbs.h>

// 0, or the step that failed.
extern "C" __attribute__((visibility("default"))) int use_a_device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count < 1) return 1;
  ibv_context* context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (context == nullptr) return 2;
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) return 3;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr || ibv_destroy_qp(qp) != 0) return 4;
  if (ibv_destroy_cq(cq) != 0 || ibv_dealloc_pd(pd) != 0) return 5;
  return ibv_close_device(context) == 0 ? 0 : 6;
}
