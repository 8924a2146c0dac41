// Times that the links alone need, by arithmetic. Queues behind the senders, acknowledgements,
// switches and software take no time.
#pragma once

#include <cstdint>

#include "fabric-sim/experiments/exchanges.h"
#include "fabric-sim/experiments/ways.h"

namespace cepheus::sim {

// Microseconds until the last rank is done. Rank r is host r. Its program needs `post_us` for each
// message that it sends.
double us_of(const Exchanges& exchanges, const Ways& ways, double post_us = 0);

// Packets over links that they take, without acknowledgements.
std::uint64_t hops_of(const Exchanges& exchanges, const Ways& ways);

// Microseconds of a reduction with a result of `bytes` in units of `unit` bytes: up to a root in the
// middle, and down again.
double us_of_reduction(std::uint64_t bytes, std::uint64_t unit, const Ways& ways);
std::size_t units_of(std::uint64_t bytes, std::uint64_t unit);

}  // namespace cepheus::sim
