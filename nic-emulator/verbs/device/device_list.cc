// ibv_get_device_list, and queries of a device that is not open. cepheus0 comes first, libibverbs'
// own devices follow. The list is empty if CEPHEUS_FABRIC is set and no process listens there.
//
// ibv_get_device_guid attaches the process if it never was, since the GUID contains its address. It
// returns 0 if that fails, and keeps errno.
#include <cstdlib>

#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/device/device.h"
#include "nic-emulator/verbs/device/environment.h"
#include "nic-emulator/verbs/device/report.h"
#include "nic-emulator/verbs/next_library.h"

namespace cepheus::verbs {
namespace {

// Our lists keep libibverbs' own list in the slot before the first device, to free both together.
constexpr std::size_t kHidden = 1;

ibv_device** next_list(int* count) {
  return call_next<ibv_device**(int*)>("ibv_get_device_list", count);
}

void free_next_list(ibv_device** list) {
  if (list != nullptr) call_next<decltype(ibv_free_device_list)>("ibv_free_device_list", list);
}

// {libibverbs' list, ours..., its devices..., null}; takes over `next`.
ibv_device** make_list(bool with_ours, ibv_device** next, int next_count) {
  const std::size_t devices = static_cast<std::size_t>(next_count) + (with_ours ? 1 : 0);
  auto** slots = static_cast<ibv_device**>(std::calloc(kHidden + devices + 1, sizeof(ibv_device*)));
  if (slots == nullptr) {
    free_next_list(next);
    return refuse(ENOMEM);
  }
  slots[0] = reinterpret_cast<ibv_device*>(next);
  ibv_device** at = slots + kHidden;
  if (with_ours) *at++ = &the_device();
  for (int i = 0; i < next_count; ++i) *at++ = next[i];
  return slots + kHidden;
}

}  // namespace
}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_device** ibv_get_device_list(int* num_devices) {
  return guarded([&]() -> ibv_device** {
    if (num_devices != nullptr) *num_devices = 0;
    const Environment environment = Environment::read();
    const bool configured = !environment.fabric.empty();
    if (std::string reason; configured && !fabric_listens(environment.fabric, reason)) {
      // A program that requested the fabric must not use other devices without notice.
      set_last_error(reason);
      log_verbose(reason);
      return make_list(false, nullptr, 0);
    }
    int next_count = 0;
    ibv_device** next = next_list(&next_count);
    if (next == nullptr) {
      if (!configured) return nullptr;
      next_count = 0;
    }
    ibv_device** list = make_list(configured, next, next_count);
    if (list != nullptr && num_devices != nullptr) *num_devices = next_count + (configured ? 1 : 0);
    return list;
  });
}

CEPHEUS_EXPORT void ibv_free_device_list(ibv_device** list) {
  if (list == nullptr) return;
  ibv_device** slots = list - kHidden;
  free_next_list(reinterpret_cast<ibv_device**>(slots[0]));
  std::free(slots);
}

CEPHEUS_EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }

CEPHEUS_EXPORT int ibv_get_device_index(ibv_device* device) {
  if (is_ours(device)) return -1;  // the kernel has no index for it
  return call_next<decltype(ibv_get_device_index)>("ibv_get_device_index", device);
}

CEPHEUS_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  CEPHEUS_PASS_ON_UNLESS_OURS(device, ibv_get_device_guid, device);
  const int saved = errno;
  __be64 guid = 0;
  guarded([&] {
    const cepheus::wire::Ipv4 address = nic_address();
    if (!address.is_unset()) guid = guid_of(address);
    return 0;
  });
  errno = saved;
  return guid;
}

CEPHEUS_EXPORT const char* cepheus_roce_last_error() {
  const char* text = guarded([] { return last_error(); });
  return text == nullptr ? "" : text;
}
