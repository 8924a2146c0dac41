// cepheus-sim experiment: lists the experiments, or runs one and prints its table and JSON.
#pragma once

#include <string>

#include "fabric-sim/experiments/experiment.h"

namespace cepheus::sim {

struct ExperimentCommand {
  bool list = false;
  std::string name;
  ExperimentOptions options;
  std::string json;  // file; empty: none
};

// Prints the table to standard output, progress to standard error. 0: done; 1: it failed, or a file
// could not be written; 2: there is no such experiment.
int run_experiment(const ExperimentCommand& command);

}  // namespace cepheus::sim
