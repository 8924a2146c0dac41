// All experiments. registry.cc has their order.
#pragma once

#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {

extern const Experiment kCepheusHops, kCepheusFig8, kCepheusFig9, kCepheusFig12, kCepheusFig13,
    kCepheusFig14, kCepheusMemory, kStorageIops, kStorageLatency, kGleamFig9, kGleamFig13,
    kGleamFig14, kGleamFig14Random, kGleamFig15, kGleamFig16, kMcRdmaFig4, kMcRdmaFig5, kMcRdmaFig6,
    kMcRdmaFig7, kMcRdmaFig8Ali, kMcRdmaFig8Web, kMcRdmaFig9, kMcRdmaRules, kCepheusVsMcRdma,
    kTmcfFig3, kTmcfFig4, kTmcfFig6, kCnpWindow, kCnpTurns, kIncast, kAblationRecheck,
    kAblationHash, kOtherNics, kSlowBox, kBestUnicast, kAllreduceLatency, kAllreduceBandwidth,
    kAllreduceLoss, kAllreduceLate, kAllreduceMemory, kBarrier;

}  // namespace cepheus::sim
