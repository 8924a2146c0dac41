// A context's parameters, and what follows from them on its device.
#pragma once

#include <memory>
#include <optional>

#include "libmcast/control_channel.h"
#include "libmcast/control_plane.h"
#include "libmcast/device.h"

namespace cepheus::mcast {

struct ContextConfig {
  DeviceOptions device;
  std::uint16_t mrp_port = wire::kDefaultMrpUdpPort;
  wire::Duration register_timeout = std::chrono::seconds(1);
  std::optional<wire::Duration> register_silence;  // see mrp::RegistrationConfig
  wire::Ipv4Prefix pool = wire::kDefaultMcstPool;
  std::size_t max_eager_memory = std::size_t{64} << 20;
  std::optional<wire::Duration> progress_timeout;  // NicTiming derives the watchdog from it
  std::optional<wire::Duration> link_outage;       // see NicTiming
  std::shared_ptr<const wire::MrpKey> key;         // null: nothing is signed
};

// The emulated NIC, which stores in the program's process, tells its own times.
NicTiming timing_of(const ContextConfig& config, const Device& device,
                    const ControlChannel& channel);
// Packets that a queue pair has under way (SendWindow).
std::uint32_t nic_window_of(const Device& device, const ControlChannel& channel);
ControlPlaneConfig control_plane_config(const ContextConfig& config, const Device& device,
                                        const NicTiming& timing);

}  // namespace cepheus::mcast
