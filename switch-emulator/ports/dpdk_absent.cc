// For builds without DPDK.
#include "switch-emulator/ports/dpdk_driver.h"

namespace cepheus::fabric {

wire::Result<std::unique_ptr<InterfaceDriver>> DpdkDriver::open(const std::string& device,
                                                                std::uint32_t,
                                                                const wire::Ipv4Prefix&,
                                                                PayloadPools&, std::uint32_t) {
  return wire::unavailable("DPDK device " + device +
                           ": this cepheus-switch was built without DPDK; install libdpdk-dev and "
                           "build it again, or leave one_armed_dpdk out");
}

}  // namespace cepheus::fabric
