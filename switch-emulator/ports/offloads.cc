// The constructor reads the names of all features once, and a name's place is its bit
// (ETHTOOL_GSTRINGS). set() changes one bit and reads it back, since hardware may refuse without an
// error. An interface without names knows no feature: is_on() is false, and switching one off
// succeeds.
#include "switch-emulator/ports/offloads.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace cepheus::fabric {
namespace {

constexpr std::uint32_t kBits = 32;  // of a block

// A request of the kernel's: a head, and elements behind it.
template <typename Head>
class Request {
 public:
  Request(std::uint32_t command, std::size_t bytes_behind)
      : memory_((sizeof(Head) + bytes_behind + 3) / 4) {
    head()->cmd = command;
  }
  Head* head() { return reinterpret_cast<Head*>(memory_.data()); }

 private:
  std::vector<std::uint32_t> memory_;
};

}  // namespace

Offloads::Offloads(const std::string& interface)
    : interface_(interface), fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  Request<ethtool_sset_info> info(ETHTOOL_GSSET_INFO, sizeof(std::uint32_t));
  info.head()->sset_mask = 1ull << ETH_SS_FEATURES;
  if (!call(info.head()) || info.head()->sset_mask == 0) return;
  const std::uint32_t count = info.head()->data[0];
  Request<ethtool_gstrings> names(ETHTOOL_GSTRINGS, std::size_t{count} * ETH_GSTRING_LEN);
  names.head()->string_set = ETH_SS_FEATURES;
  names.head()->len = count;
  if (!call(names.head())) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* name = reinterpret_cast<const char*>(names.head()->data) + i * ETH_GSTRING_LEN;
    names_.emplace_back(name, strnlen(name, ETH_GSTRING_LEN));
  }
}

bool Offloads::is_on(std::string_view name) const {
  const auto bit = bit_of(name);
  if (!bit) return false;
  const std::size_t blocks = (names_.size() + kBits - 1) / kBits;
  Request<ethtool_gfeatures> get(ETHTOOL_GFEATURES, blocks * sizeof(ethtool_get_features_block));
  get.head()->size = static_cast<std::uint32_t>(blocks);
  return call(get.head()) && (get.head()->features[*bit / kBits].active >> *bit % kBits & 1) != 0;
}

bool Offloads::set(std::string_view name, bool on) const {
  const auto bit = bit_of(name);
  if (!bit) return !on;
  const std::size_t blocks = (names_.size() + kBits - 1) / kBits;
  Request<ethtool_sfeatures> put(ETHTOOL_SFEATURES, blocks * sizeof(ethtool_set_features_block));
  put.head()->size = static_cast<std::uint32_t>(blocks);
  put.head()->features[*bit / kBits].valid = 1u << *bit % kBits;
  put.head()->features[*bit / kBits].requested = on ? 1u << *bit % kBits : 0;
  return call(put.head()) && is_on(name) == on;
}

std::optional<std::size_t> Offloads::bit_of(std::string_view name) const {
  const auto at = std::ranges::find(names_, name);
  if (at == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names_.begin());
}

bool Offloads::call(void* request) const {
  ifreq named{};
  std::strncpy(named.ifr_name, interface_.c_str(), IFNAMSIZ - 1);
  named.ifr_data = static_cast<char*>(request);
  return ioctl(fd_.get(), SIOCETHTOOL, &named) >= 0;
}

}  // namespace cepheus::fabric
