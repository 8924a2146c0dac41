// The headers are copied as 64-bit words with their variant fields as ones, and ISA-L's CRC goes
// over these and the payload. InfiniBand's routing header, which RoCE lacks, is eight bytes of
// ones: the register's start value stands for it.
//
// patch_icrc() takes the CRC of both headers' difference, moved by the payload's length
// (crc32_shift.h). Variant fields do not count there. Sources: IBTA vol. 1, 7.8.1, and Annex
// A17.3.3.
#include "wire/icrc.h"

#include <isa-l/crc.h>

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "wire/byte_order.h"
#include "wire/crc32_shift.h"
#include "wire/roce.h"

namespace cepheus::wire {
namespace {

// ISA-L's (inverted) register after the eight bytes of ones that stand for an InfiniBand LRH.
constexpr std::uint32_t kAfterOnes = ~0xDEBB20E3u;

// The covered header bytes, from the IPv4 header on, as words, so that stores and loads have one
// width. Every header is a whole number of 32-bit words long.
using Covered = std::array<std::uint64_t, (Frame::kCapacity - kIpOffset + 7) / 8>;

constexpr std::size_t kFixedSize = kExtensionOffset - kIpOffset;  // IPv4, UDP and BTH
using Fixed = std::array<std::uint8_t, kFixedSize>;
using FixedWords = std::array<std::uint64_t, kFixedSize / 8>;
static_assert(sizeof(Fixed) == sizeof(FixedWords));

// Ones in all bits that switches may change on the way.
constexpr FixedWords kVariant = [] {
  Fixed bytes{};
  const auto mark = [&bytes](std::size_t frame_offset, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) bytes[frame_offset - kIpOffset + i] = 0xFF;
  };
  mark(kIpOffset + 1, 1);   // type of service
  mark(kIpOffset + 8, 1);   // time to live
  mark(kIpOffset + 10, 2);  // checksum
  mark(kUdpOffset + 6, 2);  // checksum
  mark(kBthOffset + 4, 1);  // FECN, BECN, reserved6
  return std::bit_cast<FixedWords>(bytes);
}();

std::span<const std::uint8_t> bytes_of(const Covered& covered, std::size_t n) {
  return {reinterpret_cast<const std::uint8_t*>(covered.data()), n};
}

}  // namespace

std::uint32_t compute_icrc(const Frame& frame) {
  assert(frame.header_len >= kExtensionOffset && frame.header_len <= Frame::kCapacity);
  const std::uint8_t* header = frame.bytes.data() + kIpOffset;
  const std::size_t n = frame.header_len - kIpOffset;
  Covered covered;
  for (std::size_t i = 0; i < kVariant.size(); ++i) {
    covered[i] = load_native<std::uint64_t>(header + 8 * i) | kVariant[i];
  }
  std::memcpy(covered.data() + kVariant.size(), header + kFixedSize, n - kFixedSize);
  const std::uint32_t crc = crc32_gzip_refl(kAfterOnes, bytes_of(covered, n).data(), n);
  const auto payload = frame.payload();
  return payload.empty() ? crc : crc32_gzip_refl(crc, payload.data(), payload.size());
}

void seal_icrc(Frame& frame) {
  if (frame.icrc_state != Icrc::kDeferred) return;
  frame.icrc = compute_icrc(frame);
  frame.icrc_state = Icrc::kPresent;
}

bool check_icrc(const Frame& frame) {
  switch (frame.icrc_state) {
    case Icrc::kDeferred:
      return true;
    case Icrc::kPresent:
      return frame.icrc == compute_icrc(frame);
    case Icrc::kNone:
      break;
  }
  return false;
}

std::uint32_t patch_icrc(std::uint32_t icrc, std::span<const std::uint8_t> header_before,
                         std::span<const std::uint8_t> header_after, std::size_t payload_len) {
  assert(header_before.size() == header_after.size());
  assert(header_before.size() >= kExtensionOffset && header_before.size() <= Frame::kCapacity);
  const std::size_t n = header_before.size() - kIpOffset;
  assert(n % 4 == 0);
  const std::uint8_t* before = header_before.data() + kIpOffset;
  const std::uint8_t* after = header_after.data() + kIpOffset;
  Covered difference;
  for (std::size_t i = 0; i < kVariant.size(); ++i) {
    difference[i] =
        (load_native<std::uint64_t>(before + 8 * i) ^ load_native<std::uint64_t>(after + 8 * i)) &
        ~kVariant[i];
  }
  std::size_t at = kFixedSize;
  for (; at + 8 <= n; at += 8) {
    difference[at / 8] =
        load_native<std::uint64_t>(before + at) ^ load_native<std::uint64_t>(after + at);
  }
  if (at < n)
    difference[at / 8] =
        load_native<std::uint32_t>(before + at) ^ load_native<std::uint32_t>(after + at);
  return icrc ^ crc32_shift(bytes_of(difference, n), payload_len);
}

}  // namespace cepheus::wire
