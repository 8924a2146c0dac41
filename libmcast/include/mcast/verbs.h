/* libmcast: a context's device port, for verbs objects of the application's own beside its groups,
 * such as queue pairs for READs. <infiniband/verbs.h> declares the handles. */
#ifndef MCAST_VERBS_H
#define MCAST_VERBS_H

#include <mcast/mcast.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_context;
struct ibv_mr;
struct ibv_pd;

typedef struct mcast_verbs {
  size_t struct_size;
  struct ibv_context* context; /* the library reads its asynchronous events */
  struct ibv_pd* pd;           /* memory of mcast_mem_register() and the like is in it, too */
  uint8_t port;
  /* Not 0: the NIC is code of this process (the emulated NIC), and its stores make pages of a mapped
   * file dirty as the program's own do. 0: the device stores by DMA, or the kernel for it. The kernel
   * does not write such a page back again after it was written back once. */
  int stores_in_process;
} mcast_verbs_t;
#define MCAST_VERBS_INIT \
  { sizeof(mcast_verbs_t), NULL, NULL, 0, 0 }

/* The handles stay the library's: destroy objects made of them before the context. */
MCAST_API mcast_status_t mcast_context_verbs(mcast_context_h context, mcast_verbs_t* out);
/* The memory region with its keys: the library's until mcast_mem_deregister(). NULL for NULL. */
MCAST_API struct ibv_mr* mcast_mem_verbs(mcast_mem_h mem);

#ifdef __cplusplus
}
#endif
#endif
