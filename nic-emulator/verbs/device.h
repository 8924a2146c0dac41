// The device `cepheus0`: what programs see in the device list, and the one NIC of this process
// behind it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "nic-emulator/verbs/live_nic.h"
#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::verbs {

inline constexpr const char* kDeviceName = "cepheus0";
inline constexpr const char* kUverbsName = "uverbs_cepheus0";

// Programs compare the word behind ibv_device, where libibverbs' providers keep their operations,
// with a provider's own: it is there, and nobody's.
struct Device : ibv_device {
  const void* operations = nullptr;
  std::uint64_t reserved[8]{};
};

Device& the_device();
inline bool is_ours(const ibv_device* device) { return device == &the_device(); }
inline bool is_ours(const ibv_context* context) { return is_ours(context->device); }

// The port's GID: its IPv4 address, mapped (RoCEv2, IBTA Annex A17.4.4).
ibv_gid gid_of(wire::Ipv4 address);
// The address of a mapped GID, or nothing.
std::optional<wire::Ipv4> address_of(const ibv_gid& gid);
// Locally administered and unique within the fabric; big-endian.
__be64 guid_of(wire::Ipv4 address);

// This process's NIC, attached to the fabric at the first call and detached when the last holder
// lets go. If its fabric is gone: a fresh one, and holders of the old one keep that. Errors as
// HostPort::attach.
wire::Result<std::shared_ptr<LiveNic>> acquire_nic();
// The NIC if this process is attached, else null.
std::shared_ptr<LiveNic> current_nic();
void release_nic(std::shared_ptr<LiveNic> nic);
// Its address, without holding the NIC; attaches if this process never did. Unset if that is
// impossible.
wire::Ipv4 nic_address();

}  // namespace cepheus::verbs
