// ARP for IPv4 over Ethernet (RFC 826).
//
//   0               1               2               3
//   |     hardware type = 1         |    protocol type = 0x0800     |
//   |  hlen = 6     |   plen = 4    |    operation: 1 ask, 2 answer |
//   |                sender MAC, sender IPv4 (10 bytes)             |
//   |                target MAC, target IPv4 (10 bytes)             |
#pragma once

#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

struct Arp {
  static constexpr std::size_t kSize = 28;
  enum class Operation : std::uint16_t { kRequest = 1, kReply = 2 };

  Operation operation = Operation::kRequest;
  Mac sender_mac;
  Ipv4 sender;  // unset in a probe (RFC 5227): an answer is wanted, but no host stores the address
  Mac target_mac;
  Ipv4 target;

  // Refuses other hardware, protocols and operations. Bytes behind it are Ethernet's padding.
  static std::optional<Arp> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const Arp&, const Arp&) = default;
};

}  // namespace cepheus::wire
