// A one-armed interface by DPDK (22.11): packets bypass the kernel, on a core that polls all the
// time.
//
// A copy leaves in three pieces: its own headers, the payload in the pool, shared by all copies,
// and the ICRC; or in one, if the device sends fewer. The kernel keeps the interface as well,
// answers ARP and knows the neighbours. A device of the bus takes groups' addresses only, by a rule
// (rte_flow_isolate): without it, mlx5 would leave no unicast to the kernel. So devices that stay
// with the kernel work (mlx5, net_af_packet), and those that vfio-pci takes from it do not. Not
// thread-safe.
#pragma once

#include <memory>
#include <string>

#include "switch-emulator/ports/interface_driver.h"
#include "switch-emulator/ports/payload_pool.h"

namespace cepheus::fabric {

class DpdkDriver {
 public:
  // `device` is a DPDK name with its arguments: "0000:03:00.0", "net_af_packet0,iface=ens1".
  // `pools` outlive the driver; payloads of `pool` are sent in place. Errors: kUnavailable (no DPDK
  // in this build, no such device, no memory, packets too long for it, or a device that can't leave
  // other packets than the groups' to the kernel).
  static wire::Result<std::unique_ptr<InterfaceDriver>> open(const std::string& device,
                                                             std::uint32_t largest_frame,
                                                             const wire::Ipv4Prefix& groups,
                                                             PayloadPools& pools,
                                                             std::uint32_t pool);
};

}  // namespace cepheus::fabric
