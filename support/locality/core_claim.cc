#include "support/locality/core_claim.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>

namespace cepheus::locality {

bool CoreClaims::take(unsigned cpu) {
  wire::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "cepheus-core-" + std::to_string(cpu);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // after a zero: abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return false;
  held_.push_back(std::move(socket));
  return true;
}

}  // namespace cepheus::locality
