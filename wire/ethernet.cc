#include "wire/ethernet.h"

#include <cstring>

#include "wire/byte_order.h"

namespace cepheus::wire {

std::optional<Ethernet> Ethernet::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  Ethernet e;
  std::memcpy(e.destination.octets.data(), data.data(), 6);
  std::memcpy(e.source.octets.data(), data.data() + 6, 6);
  e.ether_type = load_be16(data.data() + 12);
  return e;
}

void Ethernet::emit(std::span<std::uint8_t, kSize> out) const {
  std::memcpy(out.data(), destination.octets.data(), 6);
  std::memcpy(out.data() + 6, source.octets.data(), 6);
  store_be16(out.data() + 12, ether_type);
}

}  // namespace cepheus::wire
