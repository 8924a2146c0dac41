#include "collectives/group/uct_domain.h"

#include <dlfcn.h>

#include "collectives/core/parameters.h"

namespace cepheus::coll {

// Not in a namespace of its own (dlmopen): such a copy of UCX would not see a preloaded NIC.
std::unique_ptr<UctDomain> UctDomain::open(const char* device, std::string& why) {
  const std::string directory = std::string(component_directory()) + "/../ucx";
  const std::string path = directory + "/libcepheus-ucx.so";
  void* const loaded = dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD);
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    why = std::string("UCX's transport can't be loaded: ") + dlerror() +
          "; it is built for UCX 1.13 and 1.18 only: leave coll_cepheus_carrier at its default";
    return nullptr;
  }
  const auto open = reinterpret_cast<OpenUctDomainFunction>(dlsym(module, kOpenUctDomain));
  return open(directory, device, loaded == nullptr, why);
}

}  // namespace cepheus::coll
