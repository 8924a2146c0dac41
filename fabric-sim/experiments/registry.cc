#include <algorithm>
#include <array>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {

std::span<const Experiment> experiments() {
  static const std::array kAll = {
      kCepheusHops,      kCepheusFig8,        kCepheusFig9,      kCepheusFig12,    kCepheusFig13,
      kCepheusFig14,     kCepheusMemory,      kStorageIops,      kStorageLatency,  kGleamFig9,
      kGleamFig13,       kGleamFig14,         kGleamFig14Random, kGleamFig15,      kGleamFig16,
      kMcRdmaFig4,       kMcRdmaFig5,         kMcRdmaFig6,       kMcRdmaFig7,      kMcRdmaFig8Ali,
      kMcRdmaFig8Web,    kMcRdmaFig9,         kMcRdmaRules,      kCepheusVsMcRdma, kTmcfFig3,
      kTmcfFig4,         kTmcfFig6,           kCnpWindow,        kCnpTurns,        kIncast,
      kAblationRecheck,  kAblationHash,       kOtherNics,        kSlowBox,         kBestUnicast,
      kAllreduceLatency, kAllreduceBandwidth, kAllreduceLoss,    kAllreduceLate,   kAllreduceMemory,
      kBarrier};
  return kAll;
}

const Experiment* find_experiment(std::string_view name) {
  const auto all = experiments();
  const auto at = std::ranges::find(all, name, &Experiment::name);
  return at == all.end() ? nullptr : &*at;
}

}  // namespace cepheus::sim
