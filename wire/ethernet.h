// Ethernet II header (IEEE 802.3): destination, source, EtherType.
#pragma once

#include <cstring>
#include <optional>
#include <span>

#include "wire/byte_order.h"
#include "wire/types.h"

namespace cepheus::wire {

struct Ethernet {
  static constexpr std::size_t kSize = 14;
  static constexpr std::uint16_t kIpv4 = 0x0800;
  static constexpr std::uint16_t kArp = 0x0806;

  Mac destination;
  Mac source;
  std::uint16_t ether_type = kIpv4;

  static std::optional<Ethernet> parse(std::span<const std::uint8_t> data) {
    Ethernet e;
    return e.read(data) ? std::optional(e) : std::nullopt;
  }
  // As parse() into this object; false, with undefined content, where parse() has no result. For
  // each packet: a copy of bytes that were just stored in small pieces stalls until they have left
  // the store buffer.
  bool read(std::span<const std::uint8_t> data) {
    if (data.size() < kSize) return false;
    std::memcpy(destination.octets.data(), data.data(), 6);
    std::memcpy(source.octets.data(), data.data() + 6, 6);
    ether_type = load_be16(data.data() + 12);
    return true;
  }
  void emit(std::span<std::uint8_t, kSize> out) const {
    std::memcpy(out.data(), destination.octets.data(), 6);
    std::memcpy(out.data() + 6, source.octets.data(), 6);
    store_be16(out.data() + 12, ether_type);
  }
  friend bool operator==(const Ethernet&, const Ethernet&) = default;
};

}  // namespace cepheus::wire
