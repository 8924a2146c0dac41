// Every experiment there is. registry.cc has their order.
#pragma once

#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {

extern const Experiment kCepheusHops;
extern const Experiment kCepheusFig8;
extern const Experiment kCepheusFig9;
extern const Experiment kCepheusFig12;
extern const Experiment kCepheusFig13;
extern const Experiment kCepheusMemory;
extern const Experiment kCepheusVsMcRdma;
extern const Experiment kGleamFig9;
extern const Experiment kGleamFig13;
extern const Experiment kGleamFig14;
extern const Experiment kGleamFig14Random;
extern const Experiment kGleamFig15;
extern const Experiment kGleamFig16;
extern const Experiment kCepheusFig14;
extern const Experiment kMcRdmaFig4;
extern const Experiment kMcRdmaFig5;
extern const Experiment kMcRdmaFig6;
extern const Experiment kMcRdmaFig7;
extern const Experiment kMcRdmaFig8Ali;
extern const Experiment kMcRdmaFig8Web;
extern const Experiment kMcRdmaFig9;
extern const Experiment kMcRdmaRules;
extern const Experiment kTmcfFig3;
extern const Experiment kTmcfFig4;
extern const Experiment kTmcfFig6;
extern const Experiment kCnpWindow;
extern const Experiment kIncast;
extern const Experiment kStorageIops;
extern const Experiment kStorageLatency;
extern const Experiment kAblationHash;
extern const Experiment kAblationRecheck;

}  // namespace cepheus::sim
