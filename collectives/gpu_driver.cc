#include "collectives/gpu_driver.h"

#include <dlfcn.h>

namespace cepheus::coll {

PointerGetAttribute find_gpu_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<PointerGetAttribute>(dlsym(library, "cuPointerGetAttribute"));
}

}  // namespace cepheus::coll
