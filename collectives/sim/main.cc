// broadcast-sim: jobs that broadcast while their fabric fails, by seeds. Exit code 0: every rule
// held; 1: some seed failed, or no seed needed a rule; 2: bad usage.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <optional>

#include "collectives/sim/campaign.h"
#include "fabric-sim/checked/first_seed.h"

namespace cepheus::coll::sim {
namespace {

struct Arguments {
  std::uint64_t seeds = 2000;
  std::uint64_t first = cepheus::sim::first_seed();
  std::optional<std::uint64_t> seed;
  bool trace = false, mutation_check = false;
  std::vector<std::string> disabled;
};

unsigned long long n(std::uint64_t value) { return value; }

void print_failure(const SeedFailure& failure, const Arguments& a) {
  std::string replay = "broadcast-sim --seed " + std::to_string(failure.seed);
  for (const std::string& rule : a.disabled) replay += " --disable " + rule;
  std::printf("seed %llu: %s\n  (%s)\n  replay: %s --trace\n", n(failure.seed),
              failure.text.c_str(), to_text(make_plan(failure.seed)).c_str(), replay.c_str());
  std::fflush(stdout);
}

int run_one(const Arguments& a) {
  if (a.trace) setenv("CEPHEUS_VERBOSE", "2", 1);
  const JobOutcome outcome = run_seed(*a.seed);
  if (outcome.failure) {
    print_failure({*a.seed, *outcome.failure}, a);
    return 1;
  }
  std::printf("seed %llu: ok after %llu events (%s)\n", n(*a.seed), n(outcome.events),
              to_text(make_plan(*a.seed)).c_str());
  return 0;
}

int run_many(const Arguments& a) {
  const SeedsResult result =
      run_seeds(a.first, a.seeds, 10, [&](const SeedFailure& f) { print_failure(f, a); });
  const JobOutcome& sum = result.sum;
  std::printf("%llu seeds from %llu, %zu failed; %llu events\n", n(result.seeds), n(a.first),
              result.failures.size(), n(sum.events));
  std::printf(
      "broadcasts: %llu multicast, %llu down trees, %llu by the saved function, %llu in an error; "
      "%llu units repaired\njobs: %llu with multicast again, %llu aborted\n"
      "safeguard: %llu comparisons, %llu of them changed the way\n",
      n(sum.multicast), n(sum.tree), n(sum.saved), n(sum.errors), n(sum.repaired), n(sum.returns),
      n(sum.aborts), n(sum.comparisons), n(sum.changes));
  return result.failures.empty() ? 0 : 1;
}

int run_mutation_check(const Arguments& a) {
  bool all = true;
  std::printf("| rule switched off | first failing seed | how it failed |\n|---|---|---|\n");
  for (const Rule& rule : kRules) {
    const RuleResult result = check_rule(rule, a.first, a.seeds);
    const bool is_caught = !result.text.empty();
    all = all && is_caught;
    std::printf("| `%s` | %s | %s |\n", rule.name,
                is_caught ? std::to_string(result.seed).c_str() : "none",
                is_caught ? result.text.c_str() : "not caught");
    std::fflush(stdout);
  }
  return all ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app("Jobs that broadcast while their fabric fails, by seeds");
  Arguments a;
  app.add_option("--seeds", a.seeds, "how many seeds to run")->capture_default_str();
  app.add_option("--first", a.first, "first seed; by default one of today's")
      ->capture_default_str();
  app.add_option("--seed", a.seed, "run this seed only");
  app.add_flag("--trace", a.trace, "print the ranks' log; with --seed")->needs("--seed");
  app.add_option("--disable", a.disabled, "switch a rule off (may be repeated)");
  app.add_flag("--mutation-check", a.mutation_check,
               "switch each rule off in turn and print the first seed that fails");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  std::deque<RuleOff> off;
  for (const std::string& rule : a.disabled) {
    if (off.emplace_back(rule).exists()) continue;
    std::cerr << "broadcast-sim: no rule '" << rule << "'; there are";
    for (const Rule& known : kRules) std::cerr << ' ' << known.name;
    std::cerr << '\n';
    return 2;
  }
  if (a.mutation_check) return run_mutation_check(a);
  return a.seed ? run_one(a) : run_many(a);
}

}  // namespace
}  // namespace cepheus::coll::sim

int main(int argc, char** argv) { return cepheus::coll::sim::run(argc, argv); }
