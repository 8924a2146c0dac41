#include "collectives/group/gpu_runtime.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <string_view>

namespace cepheus::coll {

namespace {

// Counts loads and unloads of libraries. The loader passes both numbers with the first library.
unsigned long long changes_of_libraries() {
  unsigned long long changes = 0;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds + info->dlpi_subs;
        return 1;
      },
      &changes);
  return changes;
}

// HIP, SYCL, and the offloading of OpenMP by LLVM, Intel, AMD and GCC.
bool is_gpu_runtime(std::string_view library) {
  constexpr std::string_view kNames[] = {"libamdhip64.so", "libsycl.so", "libomptarget.so",
                                         "libgomp-plugin-gcn.so"};
  return std::ranges::any_of(kNames,
                             [&](std::string_view name) { return library.starts_with(name); });
}

}  // namespace

std::string loaded_gpu_runtime() {
  std::string found;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        std::string_view name = info->dlpi_name;
        name.remove_prefix(name.rfind('/') + 1);  // without a slash: nothing
        if (!is_gpu_runtime(name)) return 0;
        *static_cast<std::string*>(out) = name;
        return 1;
      },
      &found);
  return found;
}

bool has_gpu_runtime() {
  static std::atomic<unsigned long long> looked_at{0};
  static std::atomic<bool> found{false};
  const unsigned long long changes = changes_of_libraries();
  if (looked_at.load(std::memory_order_acquire) != changes) {
    found.store(!loaded_gpu_runtime().empty());
    looked_at.store(changes, std::memory_order_release);
  }
  return found.load();
}

}  // namespace cepheus::coll
