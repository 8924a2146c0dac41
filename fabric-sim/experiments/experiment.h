// An experiment: a figure or a number of a paper, measured again on virtual time with the engines
// that run live. The page docs/experiments/NAME.md says what was simulated, and where that differs
// from the paper and why.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric-sim/experiments/report.h"

namespace cepheus::sim {

struct ExperimentOptions {
  // Congestion control of those experiments that have it (nic-emulator/engine/congestion_text.h).
  std::string congestion = "orig";
  // File of message sizes (message_sizes.h) instead of an experiment's own; "": none.
  std::string cdf = "";
  bool quick = false;  // fewer and smaller points, for a first look: a minute or two
  unsigned seeds = 0;  // of random links and placements; 0: as many as the experiment needs
  unsigned seeds_or(unsigned when_quick, unsigned when_full) const {
    return seeds != 0 ? seeds : quick ? when_quick : when_full;
  }
};

struct Experiment {
  std::string_view name;
  std::string_view shows;     // one sentence
  std::string_view figure;    // whose
  std::string_view cost;      // time on one core: "quick, full"
  std::string_view x;         // what the points lie over
  std::string_view headline;  // the series whose values stand in the index of all experiments
  std::string_view verdict;   // those values beside the paper's, in a few words
  void (*run)(const ExperimentOptions& options, Report& report);
};

// All, in the order of the papers' figures.
std::span<const Experiment> experiments();
// Null if none is called so.
const Experiment* find_experiment(std::string_view name);

}  // namespace cepheus::sim
