// What hardware or kernel do with an interface's packets beside passing them on (ethtool(8), -k and
// -K): GRO, checksums, VLAN tags. Names are the kernel's, such as "rx-gro".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "switch-emulator/ports/unique_fd.h"

namespace cepheus::fabric {

class Offloads {
 public:
  // Without names if there is no such interface.
  explicit Offloads(const std::string& interface);

  // False also if the interface does not know it.
  bool is_on(std::string_view name) const;
  // False if it is not as wanted afterwards: that takes CAP_NET_ADMIN, and hardware may refuse.
  bool set(std::string_view name, bool on) const;

 private:
  bool call(void* request) const;
  std::optional<std::size_t> bit_of(std::string_view name) const;

  const std::string interface_;
  const UniqueFd fd_;
  std::vector<std::string> names_;
};

}  // namespace cepheus::fabric
