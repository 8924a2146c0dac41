// UDP header (RFC 768). RoCEv2 senders put 0 into the checksum (IBTA Annex A17.4.5.2).
#pragma once

#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

struct Udp {
  static constexpr std::size_t kSize = 8;

  std::uint16_t source_port = 0;
  std::uint16_t destination_port = kRoceUdpPort;
  std::uint16_t length = 0;  // header and all behind it, bytes
  std::uint16_t checksum = 0;

  static std::optional<Udp> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const Udp&, const Udp&) = default;
};

}  // namespace cepheus::wire
