#include "nic-emulator/verbs/queues/address_vector.h"

#include <algorithm>

#include "nic-emulator/verbs/device/device.h"
#include "nic-emulator/verbs/device/limits.h"

namespace cepheus::verbs {

// 1 means "in this subnet", and 0 that the program has set no value. The fabric is one subnet to
// programs, but its switches count hops.
constexpr std::uint8_t kLeastHops = 64;

const char* to_engine(const ibv_ah_attr& ah, AddressVector& out) {
  if (ah.is_global == 0) return "RoCE needs a GRH: set ah_attr.is_global and a dgid";
  if (ah.grh.sgid_index != 0) return "the only sgid_index is 0";
  if (ah.port_num > kPort) return "the only ah_attr.port_num is 1";
  const auto address = address_of(ah.grh.dgid);
  if (!address) return "dgid must be an IPv4 address, mapped: ::ffff:a.b.c.d";
  out = {.ip = *address,
         .traffic_class = ah.grh.traffic_class,
         .hop_limit = std::max(ah.grh.hop_limit, kLeastHops)};
  return nullptr;
}

}  // namespace cepheus::verbs
