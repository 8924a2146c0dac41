// Ethernet II header (IEEE 802.3): destination, source, EtherType.
#pragma once

#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

struct Ethernet {
  static constexpr std::size_t kSize = 14;
  static constexpr std::uint16_t kIpv4 = 0x0800;
  static constexpr std::uint16_t kArp = 0x0806;

  Mac destination;
  Mac source;
  std::uint16_t ether_type = kIpv4;

  static std::optional<Ethernet> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const Ethernet&, const Ethernet&) = default;
};

}  // namespace cepheus::wire
