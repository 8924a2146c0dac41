// cepheus-volume-sim: a replicated volume under deaths, cuts and rival writers, by seeds. Exit code
// 0: no acknowledged write was lost, nothing was read that was not written, replicas came to be
// alike; 1: some seed failed; 2: bad usage.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <thread>

#include "fabric-sim/checked/first_seed.h"
#include "replica/sim/volume_campaign.h"

namespace cepheus::replica::sim {
namespace {

struct Arguments {
  std::uint64_t seeds = 2000;
  std::uint64_t first = cepheus::sim::first_seed();
  unsigned jobs = std::max(std::thread::hardware_concurrency(), 1u);
  std::optional<std::uint64_t> seed;
  bool trace = false, rule_check = false;
  std::vector<std::string> disabled;
  Rules rules;
};

void print_failure(const VolumeFailure& failure, const Arguments& a) {
  std::printf("seed %llu: %s\n  replay: %s\n", static_cast<unsigned long long>(failure.seed),
              failure.text.c_str(), replay_line(failure.seed, a.disabled).c_str());
}

int run_one(const Arguments& a) {
  const World::Outcome outcome = run_seed(*a.seed, a.rules, a.trace);
  if (outcome.failure) {
    print_failure({*a.seed, *outcome.failure}, a);
    return 1;
  }
  std::printf("seed %llu: ok: %llu requests, %llu acknowledged\n",
              static_cast<unsigned long long>(*a.seed),
              static_cast<unsigned long long>(outcome.operations),
              static_cast<unsigned long long>(outcome.acknowledged));
  return 0;
}

int run_many(const Arguments& a) {
  const VolumeResult result = run_seeds(a.first, a.seeds, a.jobs, a.rules, 10,
                                        [&](const VolumeFailure& f) { print_failure(f, a); });
  const auto n = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%llu seeds from %llu: %zu failed; %llu requests, %llu acknowledged, %llu takeovers, "
      "%llu evictions\n",
      n(result.seeds), n(a.first), result.failures.size(), n(result.sum.operations),
      n(result.sum.acknowledged), n(result.sum.takeovers), n(result.sum.evicted));
  return result.failures.empty() ? 0 : 1;
}

int run_rule_check(const Arguments& a) {
  bool all = true;
  std::printf("| rule switched off | first failing seed | how it failed |\n|---|---|---|\n");
  for (const RuleResult& r : check_rules(a.first, a.seeds)) {
    all = all && r.seed != 0;
    std::printf("| `%s` | %s | %s |\n", r.rule.c_str(),
                r.seed != 0 ? std::to_string(r.seed).c_str() : "none",
                r.seed != 0 ? r.text.c_str() : "not caught");
  }
  return all ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app("A replicated volume under deaths, cuts and rival writers, by seeds");
  Arguments a;
  app.add_option("--seeds", a.seeds, "how many")->capture_default_str();
  app.add_option("--first", a.first, "the first of them; default: one of today's");
  app.add_option("--jobs", a.jobs, "threads")->check(CLI::Range(1u, 1024u));
  app.add_option("--seed", a.seed, "this one only");
  app.add_flag("--trace", a.trace, "what happens, with --seed");
  app.add_option("--disable", a.disabled, "switch a safety rule off");
  app.add_flag("--rule-check", a.rule_check,
               "switch each rule off in turn, until a seed fails for it");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::cerr << "cepheus-volume-sim: " << e.what() << '\n';
    return 2;
  }
  for (const std::string& rule : a.disabled) {
    if (set_rule(a.rules, rule, false)) continue;
    std::cerr << "cepheus-volume-sim: no rule " << rule << "; there are";
    for (const char* const known : kRules) std::cerr << ' ' << known;
    std::cerr << '\n';
    return 2;
  }
  if (a.rule_check) return run_rule_check(a);
  return a.seed ? run_one(a) : run_many(a);
}

}  // namespace
}  // namespace cepheus::replica::sim

int main(int argc, char** argv) { return cepheus::replica::sim::run(argc, argv); }
