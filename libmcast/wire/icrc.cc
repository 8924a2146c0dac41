#include "libmcast/wire/icrc.h"

#include <isa-l/crc.h>

#include <array>
#include <cassert>

#include "libmcast/wire/crc32_shift.h"
#include "libmcast/wire/roce.h"

namespace cepheus::wire {
namespace {

// ISA-L's view (inverted) of the register behind the eight bytes of ones that stand for an
// InfiniBand LRH.
constexpr std::uint32_t kAfterOnes = ~0xDEBB20E3u;

// Offsets in the frame of what switches may change under way.
constexpr std::size_t kTos = kIpOffset + 1;
constexpr std::size_t kTtl = kIpOffset + 8;
constexpr std::size_t kIpChecksum = kIpOffset + 10;
constexpr std::size_t kUdpChecksum = kUdpOffset + 6;
constexpr std::size_t kBthFlags = kBthOffset + 4;  // FECN, BECN, reserved6

// The covered header bytes, from the IPv4 header on.
using Covered = std::array<std::uint8_t, Frame::kCapacity - kIpOffset>;

void set_variant_fields(Covered& covered, std::uint8_t value) {
  const auto set = [&](std::size_t offset, std::size_t n) {
    std::memset(covered.data() + offset - kIpOffset, value, n);
  };
  set(kTos, 1);
  set(kTtl, 1);
  set(kIpChecksum, 2);
  set(kUdpChecksum, 2);
  set(kBthFlags, 1);
}

}  // namespace

std::uint32_t compute_icrc(const Frame& frame) {
  assert(frame.header_len >= kExtensionOffset && frame.header_len <= Frame::kCapacity);
  Covered covered;
  const std::size_t n = frame.header_len - kIpOffset;
  std::memcpy(covered.data(), frame.bytes.data() + kIpOffset, n);
  set_variant_fields(covered, 0xFF);
  const std::uint32_t crc = crc32_gzip_refl(kAfterOnes, covered.data(), n);
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
  Covered difference;
  const std::size_t n = header_before.size() - kIpOffset;
  for (std::size_t i = 0; i < n; ++i) {
    difference[i] = header_before[kIpOffset + i] ^ header_after[kIpOffset + i];
  }
  set_variant_fields(difference, 0);
  return icrc ^ crc32_shift({difference.data(), n}, payload_len);
}

}  // namespace cepheus::wire
