// Only a failed open of exactly that path counts, and only while CEPHEUS_FABRIC is set. A rank is
// known by its launcher's variable, a program with UCX by its loaded libuct_rdmacm.so. Without
// memory for the line there is none: the program's own call never fails because of it.
#include "nic-emulator/verbs/connection_manager.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "nic-emulator/verbs/cancellation.h"
#include "nic-emulator/verbs/device/environment.h"
#include "nic-emulator/verbs/device/report.h"

namespace cepheus::verbs {
namespace {

constexpr std::string_view kDevice = "/dev/infiniband/rdma_cm";
constexpr const char* kText =
    "this program opens the RDMA connection manager (/dev/infiniband/rdma_cm), which cepheus0 "
    "lacks: let it exchange addresses over TCP (perftest: without -R)";

bool has_ucx_module() {
  const auto is_it = [](dl_phdr_info* library, std::size_t, void*) {
    return std::string_view(library->dlpi_name).find("/libuct_rdmacm.so") != std::string_view::npos
               ? 1
               : 0;
  };
  return ::dl_iterate_phdr(is_it, nullptr) != 0;
}

void report(const Environment& environment) {
  if (!environment.is_rank && !has_ucx_module()) return print_line(kText);
  if (!environment.is_rank || environment.is_first_rank) log_verbose(kText);
}

}  // namespace

void note_opening(const char* path, int result) {
  if (result >= 0 || path == nullptr || path != kDevice) return;
  const Uncancelled uncancelled;
  static std::atomic<bool> has_reported{false};
  const int saved = errno;
  try {
    const Environment environment = Environment::read();
    if (!environment.fabric.empty() && !has_reported.exchange(true)) report(environment);
  } catch (...) {  // no memory: no message
  }
  errno = saved;
}

}  // namespace cepheus::verbs
