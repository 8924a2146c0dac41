/* Memory under a key and an address of the program's choice, which hardware does not offer. One
 * multicast WRITE for all receivers needs it: switches have nothing to rewrite (Gleam, appendix C).
 *
 * libcepheus-roce.so exports it; users find it with dlsym(RTLD_DEFAULT, ...). */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As ibv_reg_mr_iova2(), with `key`, 1 to 65536, as lkey and rkey. NULL and errno: EBUSY (the key
 * is in use on this device), EINVAL (no such key, or access flags), EFAULT, ENOMEM, EOPNOTSUPP (not
 * a device of the emulated NIC). */
struct ibv_mr* cepheus_roce_reg_mr_as(struct ibv_pd* pd, void* address, size_t length,
                                      uint64_t iova, uint32_t key, unsigned access);

#ifdef __cplusplus
}
#endif
