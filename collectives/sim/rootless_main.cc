// rootless-sim: jobs that reduce while their groups fail, by seeds.
#include <iostream>

#include "collectives/sim/rootless_job.h"
#include "fabric-sim/checked/seed_program.h"

namespace cepheus::coll::sim {
namespace {

RootlessOutcome run_one(std::uint64_t seed, const std::vector<std::string>& off, bool trace) {
  if (trace) std::cout << to_text(make_rootless_plan(seed)) << std::endl;
  return run_rootless_seed(seed, off, trace);
}

std::string summary(const RootlessOutcome& sum) {
  const auto n = [](std::uint64_t value, const char* what) { return std::to_string(value) + what; };
  return n(sum.events, " events\nreductions: ") + n(sum.by_group, " by groups, ") +
         n(sum.by_host, " by the host's own function, ") + n(sum.errors, " in an error; ") +
         n(sum.copied, " results copied\njobs: ") + n(sum.failovers, " with a failure, ") +
         n(sum.lost, " of them a lost result, ") + n(sum.returns, " with a later group");
}

}  // namespace
}  // namespace cepheus::coll::sim

int main(int argc, char** argv) {
  using namespace cepheus::coll::sim;
  return cepheus::sim::SeedProgram<RootlessOutcome>{
      "rootless-sim", "Simulate jobs that reduce while their groups fail, one run per seed.",
      kRootlessRules, 1,
      run_one,        summary}
      .start(argc, argv);
}
