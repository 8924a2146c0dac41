// CUDA's driver alone can be asked without MPI. A program loads it when it likes, so each broadcast
// looks for it, but only if the loader's count of libraries has changed since the last look.
#include "collectives/device_memory.h"

#include <link.h>

#include <atomic>
#include <cstdint>

#include "collectives/gpu_driver.h"

namespace cepheus::coll {

namespace {

constexpr int kMemoryTypeAttribute = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned kDeviceMemory = 2;    // CU_MEMORYTYPE_DEVICE

std::atomic<PointerGetAttribute> driver{nullptr};

// Looks whether the program has CUDA's driver library loaded by now. Programs load it when they
// like, so every broadcast looks; that is cheap unless they have loaded anything since.
void look_for_gpu_driver() {
  if (driver.load(std::memory_order_relaxed) != nullptr) return;
  // The number of loaded libraries, which the loader passes with the first one.
  unsigned long long loads = 0;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &loads);
  // Set behind the driver: a thread that finds this number here finds the driver, too.
  static std::atomic<unsigned long long> looked_at{0};
  if (looked_at.load(std::memory_order_acquire) == loads) return;
  if (const PointerGetAttribute found = find_gpu_driver()) driver.store(found);
  looked_at.store(loads, std::memory_order_release);
}

}  // namespace

bool is_device_memory(const void* address) {
  look_for_gpu_driver();
  const PointerGetAttribute query = driver.load(std::memory_order_relaxed);
  if (query == nullptr || address == nullptr) return false;
  unsigned type = 0;
  // Memory that the driver does not know is an error to it.
  return query(&type, kMemoryTypeAttribute, reinterpret_cast<std::uintptr_t>(address)) == 0 &&
         type == kDeviceMemory;
}

}  // namespace cepheus::coll
