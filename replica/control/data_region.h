// The number of the region that is a replica's data, in every group of a volume.
#pragma once

#include <cstdint>

namespace cepheus::replica {

inline constexpr std::uint16_t kDataRegion = 1;

}  // namespace cepheus::replica
