// The device `cepheus0`, as programs see it in the device list, and the process's one NIC behind
// it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "nic-emulator/verbs/device/live_nic.h"
#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::verbs {

inline constexpr const char* kDeviceName = "cepheus0";
inline constexpr const char* kUverbsName = "uverbs_cepheus0";

// Programs compare the word behind ibv_device, where libibverbs' providers keep their operations,
// with a provider's own. So the word exists, and equals no provider's.
struct Device : ibv_device {
  const void* operations = nullptr;
  std::uint64_t reserved[8]{};
};

Device& the_device();
inline bool is_ours(const ibv_device* device) { return device == &the_device(); }
inline bool is_ours(const ibv_context* context) { return is_ours(context->device); }

// The port's GID: its IPv4 address, mapped (RoCEv2, IBTA Annex A17.4.4).
ibv_gid gid_of(wire::Ipv4 address);
// The address of a mapped GID; empty for other GIDs.
std::optional<wire::Ipv4> address_of(const ibv_gid& gid);
// Locally administered and unique within the fabric; big-endian.
__be64 guid_of(wire::Ipv4 address);

// This process's NIC. The first call attaches it to the fabric, and the end of the last reference
// detaches it. If its fabric is gone, this returns a new one, and users of the old one keep that.
// Errors as HostPort::attach.
wire::Result<std::shared_ptr<LiveNic>> acquire_nic();
// The NIC if this process is attached, else null.
std::shared_ptr<LiveNic> current_nic();
void release_nic(std::shared_ptr<LiveNic> nic);
// Its address, without a reference to the NIC; attaches if this process never did. Unset if that is
// impossible.
wire::Ipv4 nic_address();

}  // namespace cepheus::verbs
