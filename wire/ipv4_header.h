// IPv4 header without options (RFC 791), as RoCEv2 uses it.
//
//   0               1               2               3
//   |version|  IHL  |     TOS       |         total length          |
//   |        identification         |flags|    fragment offset      |
//   |      TTL      |   protocol    |        header checksum        |
//   |                        source address                         |
//   |                     destination address                       |
#pragma once

#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

struct Ipv4Header {
  static constexpr std::size_t kSize = 20;
  static constexpr std::uint8_t kUdp = 17;

  std::uint8_t tos = 0;            // DSCP and ECN
  std::uint16_t total_length = 0;  // this header and all behind it, bytes
  std::uint16_t identification = 0;
  std::uint16_t flags_fragment = 0x4000;  // don't fragment
  std::uint8_t ttl = 64;
  std::uint8_t protocol = kUdp;
  Ipv4 source;
  Ipv4 destination;

  // Refuses options, fragments, a wrong checksum and a total length below this header's own.
  // Whether the packet is as long as it says is for the caller to check: `data` may be the header
  // alone.
  static std::optional<Ipv4Header> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;  // computes the checksum
  friend bool operator==(const Ipv4Header&, const Ipv4Header&) = default;
};

// RFC 1071 over a 20-byte header whose checksum field is skipped.
std::uint16_t ipv4_checksum(std::span<const std::uint8_t, Ipv4Header::kSize> header);

// Replaces the addresses in an emitted header and corrects the checksum (RFC 1624).
void rewrite_ipv4_addresses(std::span<std::uint8_t, Ipv4Header::kSize> header, Ipv4 source,
                            Ipv4 destination);

}  // namespace cepheus::wire
