// Every experiment there is. registry.cc has their order.
#pragma once

#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {

extern const Experiment kCepheusHops;
extern const Experiment kCepheusFig12;
extern const Experiment kCepheusFig13;
extern const Experiment kCepheusMemory;
extern const Experiment kGleamFig14;

}  // namespace cepheus::sim
