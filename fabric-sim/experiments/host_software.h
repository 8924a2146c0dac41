// What the software of the papers' hosts takes of a request that is alone, fitted to two published
// numbers of Cepheus fig. 10: 23 % less time than three unicasts at 8 KiB, 60 % less at 512 KiB. Two
// constants for two numbers: neither is checked by them. Gleam's fig. 13 is not in the fit.
#pragma once

#include "wire/types.h"

namespace cepheus::sim {

// A request's way through the sender's and the receiver's host, whatever its size.
inline constexpr wire::Duration kHostPath = std::chrono::nanoseconds(14'500);
// ... and for each work request, one after the other.
inline constexpr wire::Duration kHostPost = std::chrono::nanoseconds(1'940);

}  // namespace cepheus::sim
