// What goes wrong on every cable, and until when: a phase of faults, then calm in which all must
// end well.
#pragma once

#include "wire/types.h"

namespace cepheus::sim {

struct Faults {
  double loss = 0;  // probabilities per frame and cable
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  wire::Duration reorder_by{0};  // longest delay of a reordered frame and of a second copy
  wire::Duration begin{0};       // 0: registration suffers, too
  wire::Duration end{0};
};

}  // namespace cepheus::sim
