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

#include "wire/byte_order.h"
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
  // The caller checks that the packet has total_length bytes: `data` may be the header alone.
  static std::optional<Ipv4Header> parse(std::span<const std::uint8_t> data);
  bool read(std::span<const std::uint8_t> data);        // as Ethernet::read
  void emit(std::span<std::uint8_t, kSize> out) const;  // computes the checksum
  friend bool operator==(const Ipv4Header&, const Ipv4Header&) = default;
};

namespace ipv4 {

inline constexpr std::uint8_t kVersionAndWords = 0x45;  // version 4, five 32-bit words
inline constexpr std::uint16_t kFragmentMask = 0x3FFF;  // "more fragments" and the offset
inline constexpr std::size_t kTtlOffset = 8;
inline constexpr std::size_t kChecksumOffset = 10;
inline constexpr std::size_t kSourceOffset = 12;
inline constexpr std::size_t kDestinationOffset = 16;

// Ones' complement of the ones' complement sum, 16 bits.
constexpr std::uint16_t finish_checksum(std::uint64_t sum) {
  sum = (sum & 0xFFFFFFFF) + (sum >> 32);
  sum = (sum & 0xFFFF) + (sum >> 16);  // below 2^18 + 2^16
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// Sum of 16-bit words, for finish_checksum(); an odd byte is padded with a zero.
inline std::uint64_t sum_words(std::span<const std::uint8_t> bytes) {
  std::uint64_t sum = 0;
  const std::size_t even = bytes.size() & ~std::size_t{1};
  for (std::size_t i = 0; i < even; i += 2) sum += load_be16(bytes.data() + i);
  return even == bytes.size() ? sum : sum + (std::uint64_t{bytes.back()} << 8);
}

}  // namespace ipv4

// RFC 1071 over a 20-byte header whose checksum field is skipped.
inline std::uint16_t ipv4_checksum(std::span<const std::uint8_t, Ipv4Header::kSize> header) {
  const std::uint8_t* p = header.data();
  return ipv4::finish_checksum(std::uint64_t{load_be32(p)} + load_be32(p + 4) + load_be16(p + 8) +
                               load_be32(p + ipv4::kSourceOffset) +
                               load_be32(p + ipv4::kDestinationOffset));
}

inline std::optional<Ipv4Header> Ipv4Header::parse(std::span<const std::uint8_t> data) {
  Ipv4Header h;
  return h.read(data) ? std::optional(h) : std::nullopt;
}

inline bool Ipv4Header::read(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return false;
  const std::uint8_t* p = data.data();
  tos = p[1];
  total_length = load_be16(p + 2);
  identification = load_be16(p + 4);
  flags_fragment = load_be16(p + 6);
  ttl = p[ipv4::kTtlOffset];
  protocol = p[9];
  source = Ipv4(load_be32(p + ipv4::kSourceOffset));
  destination = Ipv4(load_be32(p + ipv4::kDestinationOffset));
  return p[0] == ipv4::kVersionAndWords && total_length >= kSize &&
         (flags_fragment & ipv4::kFragmentMask) == 0 &&
         load_be16(p + ipv4::kChecksumOffset) == ipv4_checksum(data.first<kSize>());
}

inline void Ipv4Header::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  p[0] = ipv4::kVersionAndWords;
  p[1] = tos;
  store_be16(p + 2, total_length);
  store_be16(p + 4, identification);
  store_be16(p + 6, flags_fragment);
  p[ipv4::kTtlOffset] = ttl;
  p[9] = protocol;
  store_be32(p + ipv4::kSourceOffset, source.value());
  store_be32(p + ipv4::kDestinationOffset, destination.value());
  store_be16(p + ipv4::kChecksumOffset, ipv4_checksum(out));
}

// In `copy` of an emitted header: replaces the addresses, subtracts `hops` from the TTL, which must
// be that large, and corrects the checksum (RFC 1624, equation 3: HC' = ~(~HC + ~m + m')). Old
// values are read from the original, which may be the copy: reads of a fresh copy stall, because it
// is in the store buffer in other pieces.
inline void rewrite_ipv4(std::span<std::uint8_t, Ipv4Header::kSize> copy,
                         std::span<const std::uint8_t, Ipv4Header::kSize> original, Ipv4 source,
                         Ipv4 destination, std::uint8_t hops = 0) {
  const std::uint8_t* const was = original.data();
  std::uint8_t* const p = copy.data();
  const std::uint32_t old_source = load_be32(was + ipv4::kSourceOffset);
  const std::uint32_t old_destination = load_be32(was + ipv4::kDestinationOffset);
  const std::uint16_t old_ttl = load_be16(was + ipv4::kTtlOffset);
  const auto new_ttl = static_cast<std::uint16_t>(old_ttl - (hops << 8));
  const std::uint64_t sum =
      std::uint64_t{static_cast<std::uint16_t>(~load_be16(was + ipv4::kChecksumOffset))} +
      static_cast<std::uint32_t>(~old_source) + source.value() +
      static_cast<std::uint32_t>(~old_destination) + destination.value() +
      static_cast<std::uint16_t>(~old_ttl) + new_ttl;
  store_be16(p + ipv4::kTtlOffset, new_ttl);
  store_be32(p + ipv4::kSourceOffset, source.value());
  store_be32(p + ipv4::kDestinationOffset, destination.value());
  store_be16(p + ipv4::kChecksumOffset, ipv4::finish_checksum(sum));
}

}  // namespace cepheus::wire
