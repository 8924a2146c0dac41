#include "libmcast/control_channel.h"

#include "libmcast/kernel_channel.h"
#include "libmcast/roce_channel.h"

namespace cepheus::mcast {

Expected<std::unique_ptr<ControlChannel>> ControlChannel::open(const Device& device,
                                                               std::uint16_t mrp_port) {
  auto roce = RoceChannel::open(device.context(), mrp_port, device.marks());
  if (!roce) return tl::unexpected(roce.error());
  if (*roce) return std::unique_ptr<ControlChannel>(std::move(*roce));
  auto kernel = KernelChannel::open(device.ipv4(), mrp_port, device.marks());
  if (!kernel) return tl::unexpected(kernel.error());
  return std::unique_ptr<ControlChannel>(std::move(*kernel));
}

}  // namespace cepheus::mcast
