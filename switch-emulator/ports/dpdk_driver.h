// A one-armed interface by DPDK (22.11): packets without the kernel's way, on a core that looks for
// them all the time.
//
// A copy leaves in three pieces: headers of its own, the payload where it lies in the pool, shared
// by all copies, and the ICRC. The interface stays the kernel's, too, which answers ARP and knows
// the neighbours: devices that leave it there (mlx5, net_af_packet), and not those that are taken
// from it by vfio-pci. Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "switch-emulator/ports/interface_driver.h"
#include "switch-emulator/ports/payload_pool.h"

namespace cepheus::fabric {

class DpdkDriver {
 public:
  // `device` as DPDK names it, with its arguments: "0000:03:00.0", "net_af_packet0,iface=ens1".
  // `pools` outlive the driver; payloads of `pool` are sent from where they lie. Errors: kUnavailable (no DPDK in this build, no such device, no
  // memory, or a device that can't send packets in pieces).
  static wire::Result<std::unique_ptr<InterfaceDriver>> open(const std::string& device,
                                                             std::uint32_t largest_frame,
                                                             PayloadPools& pools,
                                                             std::uint32_t pool);
};

}  // namespace cepheus::fabric
