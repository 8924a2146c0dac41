/* Stands for CUDA's driver library without a GPU: reports that memory between two addresses is a
 * device's. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

static uint64_t first, last;
EXPORT unsigned long fake_gpu_questions;

EXPORT void fake_gpu_claim(void* address, uint64_t bytes) {
  first = (uint64_t)(uintptr_t)address;
  last = first + bytes;
}

EXPORT int cuPointerGetAttribute(void* data, int attribute, uint64_t pointer) {
  fake_gpu_questions++;
  if (attribute != 2 || pointer < first || pointer >= last) return 1; /* CUDA_ERROR_INVALID_VALUE */
  *(unsigned*)data = 2;                                               /* CU_MEMORYTYPE_DEVICE */
  return 0;
}
