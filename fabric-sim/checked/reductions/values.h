// Values of reductions, as bits in an integer, and the result of each operation on two of them. The
// switch computes by arithmetic/loops.h; this oracle uses no code of arithmetic/ for its results.
#pragma once

#include <cstdint>

#include "libmcast/engine/reduction.h"

namespace cepheus::sim {

// A value of this type from random bits: of floating-point numbers often zeros, infinities, NaNs and
// subnormal numbers; of integers often 0.
std::uint64_t drawn_value(arithmetic::Type type, std::uint64_t random);

// Of floating-point numbers, with exponents that are near each other: their sums and products are
// rounded, so they depend on their pairs.
std::uint64_t drawn_near_value(arithmetic::Type type, std::uint64_t random);
bool depends_on_pairs(const mcast::ReductionUnits::Kind& kind);

std::uint64_t reduced_value(const mcast::ReductionUnits::Kind& kind, std::uint64_t a,
                            std::uint64_t b);
// Whether some other value makes this result of `value`.
bool may_result(const mcast::ReductionUnits::Kind& kind, std::uint64_t value, std::uint64_t result);

}  // namespace cepheus::sim
