// Units of a reduction group: one unit is one packet, and unit k has the PSN S + k on every hop and
// in both directions (docs/protocol.md, "Reductions").
//
// Units are counted in 64 bits. Bound of all conversions from PSNs: a unit is within 2^23 of the one
// that its receiver expects or has sent last (IBTA 9.7.2).
#pragma once

#include <cstdint>

#include "wire/types.h"

namespace cepheus::fabric {

using Unit = std::uint64_t;
inline constexpr Unit kNoUnit = ~Unit{0};

constexpr wire::Psn psn_of(wire::Psn start, Unit unit) {
  return start + static_cast<std::int32_t>(unit & wire::Psn::kMask);
}
// The unit with this PSN that is nearest to `expected`; negative: before the first one.
constexpr std::int64_t unit_at(wire::Psn start, Unit expected, wire::Psn psn) {
  return static_cast<std::int64_t>(expected) + distance(psn_of(start, expected), psn);
}

}  // namespace cepheus::fabric
