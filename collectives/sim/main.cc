// broadcast-sim: jobs that broadcast and reduce while their fabric fails, by seeds.
#include <cstdlib>
#include <iostream>

#include "collectives/sim/campaign.h"
#include "fabric-sim/checked/seed_program.h"

namespace cepheus::coll::sim {
namespace {

JobOutcome run_one(std::uint64_t seed, const std::vector<std::string>& off, bool trace) {
  if (trace) {
    setenv("CEPHEUS_VERBOSE", "2", 1);
    std::cout << to_text(make_plan(seed)) << std::endl;
  }
  return off.empty() ? run_seed(seed) : run_broadcasts(seed, off);
}

std::string summary(const JobOutcome& sum) {
  const auto n = [](std::uint64_t value, const char* what) { return std::to_string(value) + what; };
  std::string refused;
  for (std::size_t i = 1; i < sum.refused.size(); ++i)
    refused += std::string(i == 1 ? "" : ", ") + std::to_string(sum.refused[i]) + " " +
               name(static_cast<Refused>(i));
  return n(sum.events, " events\ncalls: ") + n(sum.multicast, " multicast, ") +
         n(sum.tree, " down trees, ") + n(sum.saved, " by the saved function, ") +
         n(sum.errors, " in an error; ") + n(sum.repaired, " units repaired\nreductions: ") +
         n(sum.network, " in the network, ") + n(sum.messages, " by messages, ") +
         n(sum.saved_reductions, " by the saved function, ") +
         n(sum.other_sums, " sums in other pairs\njobs: ") +
         n(sum.returns, " with multicast again, ") + n(sum.aborts, " aborted\nsafeguard: ") +
         n(sum.comparisons, " comparisons, ") +
         n(sum.changes, " of them changed the way\njobs in which MPI refused a rank: ") + refused;
}

}  // namespace
}  // namespace cepheus::coll::sim

int main(int argc, char** argv) {
  using namespace cepheus::coll::sim;
  return cepheus::sim::SeedProgram<JobOutcome>{
      "broadcast-sim",
      "Simulate jobs that broadcast and reduce while their fabric fails, one run per seed.",
      kRules,
      1,
      run_one,
      summary}
      .start(argc, argv);
}
