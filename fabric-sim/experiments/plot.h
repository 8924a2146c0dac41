// A report's series as one SVG of lines: our points, the paper's as crosses, expected ones as rings.
#pragma once

#include <iosfwd>
#include <string_view>

#include "fabric-sim/experiments/report.h"

namespace cepheus::sim {

// Draws nothing but the frame if no point has the unit that the axes plot. On a logarithmic axis
// points at or below 0 are left out.
void write_svg(std::ostream& out, const Report& report, std::string_view title,
               const PlotAxes& axes);

}  // namespace cepheus::sim
