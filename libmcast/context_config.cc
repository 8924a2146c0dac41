#include "libmcast/context_config.h"

#include <random>

namespace cepheus::mcast {

NicTiming timing_of(const ContextConfig& config, const Device& device,
                    const ControlChannel& channel) {
  const wire::Duration outage = config.link_outage.value_or(kLinkOutage);
  if (!channel.stores_in_process()) {
    return NicTiming(make_of(device.name(), device.vendor_id()), outage);
  }
  const NicTiming timing(NicMake::kEmulated, outage);
  const auto own = device.repeats(timing.timers().ack_timeout);
  return own ? NicTiming(timing, own->latest, own->ignores_code) : timing;
}

std::uint32_t nic_window_of(const Device& device, const ControlChannel& channel) {
  if (channel.stores_in_process()) return device.window();
  return nic_window(make_of(device.name(), device.vendor_id()));
}

ControlPlaneConfig control_plane_config(const ContextConfig& config, const Device& device,
                                        const NicTiming& timing) {
  std::random_device random;
  ControlPlaneConfig r;
  r.host = device.ipv4();
  r.instance = random();
  r.timeout = config.register_timeout;
  r.silence = config.register_silence;
  r.evict_after = timing.evict_after();
  r.pool = config.pool;
  r.key = config.key;
  r.seed = std::uint64_t{random()} << 32 | random();
  return r;
}

}  // namespace cepheus::mcast
