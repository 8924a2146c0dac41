// ibv_fork_init and related calls. Our memory regions are never pinned, so fork needs no
// preparation. libibverbs is called too, for its own devices.
#include <cstdlib>

#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/next_library.h"

using namespace cepheus::verbs;

namespace {

bool is_configured() { return std::getenv("CEPHEUS_FABRIC") != nullptr; }

}  // namespace

CEPHEUS_EXPORT int ibv_fork_init() {
  const int error = call_next<decltype(ibv_fork_init)>("ibv_fork_init");
  return is_configured() ? 0 : error;
}

CEPHEUS_EXPORT ibv_fork_status ibv_is_fork_initialized() {
  if (is_configured()) return IBV_FORK_UNNEEDED;
  return call_next<decltype(ibv_is_fork_initialized)>("ibv_is_fork_initialized");
}
