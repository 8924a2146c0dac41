// UDP header (RFC 768). RoCEv2 senders put 0 into the checksum (IBTA Annex A17.4.5.2).
#pragma once

#include <optional>
#include <span>

#include "wire/byte_order.h"
#include "wire/types.h"

namespace cepheus::wire {

struct Udp {
  static constexpr std::size_t kSize = 8;

  std::uint16_t source_port = 0;
  std::uint16_t destination_port = kRoceUdpPort;
  std::uint16_t length = 0;  // header and all behind it, bytes
  std::uint16_t checksum = 0;

  // Refuses a length below the header's own.
  static std::optional<Udp> parse(std::span<const std::uint8_t> data) {
    Udp u;
    return u.read(data) ? std::optional(u) : std::nullopt;
  }
  bool read(std::span<const std::uint8_t> data) {  // as Ethernet::read
    if (data.size() < kSize) return false;
    const std::uint8_t* p = data.data();
    source_port = load_be16(p);
    destination_port = load_be16(p + 2);
    length = load_be16(p + 4);
    checksum = load_be16(p + 6);
    return length >= kSize;
  }
  void emit(std::span<std::uint8_t, kSize> out) const {
    store_be16(out.data(), source_port);
    store_be16(out.data() + 2, destination_port);
    store_be16(out.data() + 4, length);
    store_be16(out.data() + 6, checksum);
  }
  friend bool operator==(const Udp&, const Udp&) = default;
};

// Sets the checksum of an emitted header to "none".
inline void clear_udp_checksum(std::span<std::uint8_t, Udp::kSize> header) {
  store_be16(header.data() + 6, 0);
}

}  // namespace cepheus::wire
