// An experiment: a figure or a number of a paper, measured again on virtual time with the engines
// that run live. The page docs/experiments/NAME.md describes the simulation, and its differences
// from the paper with their reasons.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric-sim/experiments/report.h"

namespace cepheus::sim {

struct ExperimentOptions {
  // Congestion control, for experiments that use it (nic-emulator/engine/congestion_text.h).
  std::string congestion = "orig";
  // File of message sizes (message_sizes.h) instead of the experiment's own; "": none.
  std::string cdf = "";
  bool quick = false;  // fewer and smaller points, for a first look: a minute or two
  unsigned seeds = 0;  // of random links and placements; 0: the experiment's own number
  // One point alone, for experiments with groups of several sizes and rates of loss; 0: all.
  std::size_t members = 0;
  double loss = 0;
  unsigned seeds_or(unsigned when_quick, unsigned when_full) const {
    return seeds != 0 ? seeds : quick ? when_quick : when_full;
  }
};

struct Experiment {
  std::string_view name;
  std::string_view shows;     // one sentence
  std::string_view figure;    // paper and figure
  std::string_view cost;      // time on one core: "quick, full"
  std::string_view x;         // meaning of the points' x
  std::string_view headline;  // the series with values in the index of all experiments
  std::string_view verdict;   // a short comparison of those values with the paper's
  void (*run)(const ExperimentOptions& options, Report& report);
};

// All experiments, in the order of the papers' figures.
std::span<const Experiment> experiments();
// Null if no experiment has this name.
const Experiment* find_experiment(std::string_view name);

}  // namespace cepheus::sim
