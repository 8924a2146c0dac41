// Invariant CRC (IBTA vol. 1, 7.8.1 and Annex A17.3.3): CRC-32 over the packet with the variant
// fields as ones, computed with ISA-L, and patched by linearity when a switch rewrites headers.
#pragma once

#include <span>

#include "wire/frame.h"

namespace cepheus::wire {

inline constexpr std::size_t kIcrcSize = 4;  // bytes at the end of a packet

// The ICRC of a RoCE frame, as the little-endian integer of Frame::icrc. Reads headers and payload.
std::uint32_t compute_icrc(const Frame& frame);

// Computes a deferred ICRC; leaves others alone.
void seal_icrc(Frame& frame);

// True if the ICRC is right, or deferred (trusted memory); false if it is wrong.
bool check_icrc(const Frame& frame);

// The ICRC of `after`. Preconditions: `before` had ICRC `icrc`, both have the same length and
// payload, and only header bytes differ. Its cost depends on the header alone (CRC(a xor b) =
// CRC(a) xor CRC(b)).
std::uint32_t patch_icrc(std::uint32_t icrc, std::span<const std::uint8_t> header_before,
                         std::span<const std::uint8_t> header_after, std::size_t payload_len);

}  // namespace cepheus::wire
