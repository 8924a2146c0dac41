#include "wire/ipv4_header.h"

#include "wire/byte_order.h"

namespace cepheus::wire {
namespace {

constexpr std::uint8_t kVersionAndWords = 0x45;  // version 4, five 32-bit words
constexpr std::uint16_t kFragmentMask = 0x3FFF;  // "more fragments" and the offset
constexpr std::size_t kChecksumOffset = 10;
constexpr std::size_t kSourceOffset = 12;
constexpr std::size_t kDestinationOffset = 16;

constexpr std::uint16_t fold(std::uint64_t sum) {
  sum = (sum & 0xFFFFFFFF) + (sum >> 32);
  sum = (sum & 0xFFFF) + (sum >> 16);  // below 2^18 + 2^16
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

std::optional<Ipv4Header> Ipv4Header::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  Ipv4Header h;
  h.tos = p[1];
  h.total_length = load_be16(p + 2);
  h.identification = load_be16(p + 4);
  h.flags_fragment = load_be16(p + 6);
  h.ttl = p[8];
  h.protocol = p[9];
  h.source = Ipv4(load_be32(p + kSourceOffset));
  h.destination = Ipv4(load_be32(p + kDestinationOffset));
  if (p[0] != kVersionAndWords || h.total_length < kSize ||
      (h.flags_fragment & kFragmentMask) != 0 ||
      load_be16(p + kChecksumOffset) != ipv4_checksum(data.first<kSize>())) {
    return std::nullopt;
  }
  return h;
}

void Ipv4Header::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  p[0] = kVersionAndWords;
  p[1] = tos;
  store_be16(p + 2, total_length);
  store_be16(p + 4, identification);
  store_be16(p + 6, flags_fragment);
  p[8] = ttl;
  p[9] = protocol;
  store_be32(p + kSourceOffset, source.value());
  store_be32(p + kDestinationOffset, destination.value());
  store_be16(p + kChecksumOffset, ipv4_checksum(out));
}

std::uint16_t ipv4_checksum(std::span<const std::uint8_t, Ipv4Header::kSize> header) {
  const std::uint8_t* p = header.data();
  const std::uint64_t sum = std::uint64_t{load_be32(p)} + load_be32(p + 4) + load_be16(p + 8) +
                            load_be32(p + kSourceOffset) + load_be32(p + kDestinationOffset);
  return static_cast<std::uint16_t>(~fold(sum));
}

void rewrite_ipv4_addresses(std::span<std::uint8_t, Ipv4Header::kSize> header, Ipv4 source,
                            Ipv4 destination) {
  std::uint8_t* p = header.data();
  const std::uint32_t old_source = load_be32(p + kSourceOffset);
  const std::uint32_t old_destination = load_be32(p + kDestinationOffset);
  // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
  const std::uint64_t sum =
      std::uint64_t{static_cast<std::uint16_t>(~load_be16(p + kChecksumOffset))} +
      static_cast<std::uint32_t>(~old_source) + source.value() +
      static_cast<std::uint32_t>(~old_destination) + destination.value();
  store_be32(p + kSourceOffset, source.value());
  store_be32(p + kDestinationOffset, destination.value());
  store_be16(p + kChecksumOffset, static_cast<std::uint16_t>(~fold(sum)));
}

}  // namespace cepheus::wire
