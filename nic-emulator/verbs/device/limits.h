// Limits of the device that the engine does not set (engine/verbs_types.h has the rest).
#pragma once

#include <cstdint>

namespace cepheus::verbs {

inline constexpr std::uint8_t kPort = 1;  // the only one
inline constexpr std::uint32_t kMaxCqe = 65536;
inline constexpr std::uint32_t kMaxCqs = 16384;
inline constexpr std::uint32_t kMaxPds = 16384;
inline constexpr std::uint32_t kMaxAhs = 16384;
// The P_Key that every port has (IBTA 10.9.2): full member of the default partition.
inline constexpr std::uint16_t kDefaultPkey = 0xFFFF;

}  // namespace cepheus::verbs
