// cepheus-volume-sim: a replicated volume under crashes, cut links and rival writers, by seeds. A
// seed holds if no acknowledged write was lost, no read found a value that was never written, and
// replicas became equal.
#include <algorithm>

#include "fabric-sim/checked/seed_program.h"
#include "replica/sim/world.h"

namespace cepheus::replica::sim {
namespace {

std::vector<std::string> names_of_rules() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

World::Outcome run_one(std::uint64_t seed, const std::vector<std::string>& off, bool trace) {
  Rules rules;
  for (const Rule& rule : kRules) {
    rules.*rule.member = std::find(off.begin(), off.end(), rule.name) == off.end();
  }
  return run_seed(seed, rules, trace);
}

std::string summary(const World::Outcome& sum) {
  return std::to_string(sum.operations) + " requests, " + std::to_string(sum.acknowledged) +
         " acknowledged, " + std::to_string(sum.takeovers) + " takeovers, " +
         std::to_string(sum.evicted) + " evictions, " + std::to_string(sum.disk_losses) +
         " seeds with new disks of all replicas in sync";
}

}  // namespace
}  // namespace cepheus::replica::sim

int main(int argc, char** argv) {
  using namespace cepheus::replica::sim;
  return cepheus::sim::SeedProgram<World::Outcome>{
      "cepheus-volume-sim",
      "Simulate a replicated volume under deaths, cuts and rival writers, one run per seed.",
      names_of_rules(),
      1024,
      run_one,
      summary}
      .start(argc, argv);
}
