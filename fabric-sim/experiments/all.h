// Every experiment there is. registry.cc has their order.
#pragma once

#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {

extern const Experiment kCepheusHops;
extern const Experiment kCepheusFig12;
extern const Experiment kCepheusMemory;

}  // namespace cepheus::sim
