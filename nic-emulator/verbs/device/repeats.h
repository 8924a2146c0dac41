/* How late the emulated NIC may repeat a packet. That depends on its make (CEPHEUS_NIC_PROFILE).
 * Verbs have no call for it.
 *
 * libcepheus-roce.so exports it; users find it with dlsym(RTLD_DEFAULT, ...). */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In microseconds, for a queue pair with this time-out code. -1: not a device of the emulated NIC.
 * `ignores_code`: 1 if the code changes nothing. */
int64_t cepheus_roce_latest_repeat(struct ibv_context* context, unsigned timeout_code,
                                   int* ignores_code);

#ifdef __cplusplus
}
#endif
