/* What depends on the emulated NIC's make (CEPHEUS_NIC_PROFILE), and verbs have no call for.
 *
 * libcepheus-roce.so exports it; users find it with dlsym(RTLD_DEFAULT, ...). -1: not a device of
 * the emulated NIC. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How late a packet may be repeated, in microseconds, by a queue pair with this time-out code.
 * `ignores_code`: 1 if the code changes nothing. */
int64_t cepheus_roce_latest_repeat(struct ibv_context* context, unsigned timeout_code,
                                   int* ignores_code);

/* Packets that a queue pair has under way at most, whatever is posted. */
int64_t cepheus_roce_window(struct ibv_context* context);

#ifdef __cplusplus
}
#endif
