#include "wire/udp.h"

#include "wire/byte_order.h"

namespace cepheus::wire {

std::optional<Udp> Udp::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  Udp u;
  u.source_port = load_be16(p);
  u.destination_port = load_be16(p + 2);
  u.length = load_be16(p + 4);
  u.checksum = load_be16(p + 6);
  if (u.length < kSize) return std::nullopt;
  return u;
}

void Udp::emit(std::span<std::uint8_t, kSize> out) const {
  store_be16(out.data(), source_port);
  store_be16(out.data() + 2, destination_port);
  store_be16(out.data() + 4, length);
  store_be16(out.data() + 6, checksum);
}

}  // namespace cepheus::wire
