// A program that runs a simulation by seeds. Exit code 0: every seed held, or every rule is needed;
// 1: some seed failed, or some rule was not needed; 2: bad usage.
#pragma once

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>

#include "fabric-sim/checked/first_seed.h"
#include "fabric-sim/checked/seeds.h"
#include "fabric-sim/checked/situations.h"
#include "support/command_line/command_line.h"

namespace cepheus::sim {

template <typename Outcome>
struct SeedProgram {
  using Rules = std::vector<std::string>;
  std::string name;
  std::string about;
  Rules rules;         // the rules that can be switched off
  unsigned most_jobs;  // 1 if runs share state
  // Runs one seed, without the rules `off`.
  std::function<Outcome(std::uint64_t seed, const Rules& off, bool trace)> run;
  std::function<std::string(const Outcome& sum)> summary;

  int start(int argc, char** argv) const {
    CLI::App app(about);
    command_line::set_up(app, name, CEPHEUS_VERSION);
    command_line::set_example(
        app, name + " --seeds 100",
        "Exit status: 0 all seeds hold; 1 a seed failed, or no seed needs a rule; 2 wrong usage.");
    Arguments a;
    a.jobs = std::clamp(std::thread::hardware_concurrency(), 1u, most_jobs);
    app.add_option("--seeds", a.seeds, "run N seeds")->type_name("N")->capture_default_str();
    app.add_option("--first", a.first, "begin with seed N (default: one of today's)")
        ->type_name("N");
    if (most_jobs > 1) {
      app.add_option("--jobs", a.jobs, "run N seeds at a time (default: one on each core)")
          ->type_name("N")
          ->check(CLI::Range(1u, most_jobs));
    }
    app.add_option("--seed", a.seed, "run this seed only")->type_name("N");
    app.add_option("--situations", a.situations,
                   "append each situation, and how often the seeds met it, to FILE")
        ->type_name("FILE")
        ->excludes("--seed");
    app.add_flag("--trace", a.trace, "print each event; with --seed")->needs("--seed");
    app.add_option("--disable", a.off, "switch this rule off; repeatable")
        ->type_name("RULE")
        ->check(CLI::IsMember(rules));
    app.add_flag("--mutation-check", a.mutation_check,
                 "switch each rule off in turn and print the first seed that fails");
    if (const auto code = command_line::parse(app, argc, argv)) return *code;
    if (a.mutation_check) return check_rules(a);
    return a.seed ? run_one(a) : run_many(a);
  }

 private:
  struct Arguments {
    std::uint64_t seeds = 2000;
    std::uint64_t first = first_seed();
    unsigned jobs = 1;
    std::optional<std::uint64_t> seed;
    std::string situations;
    bool trace = false, mutation_check = false;
    Rules off;
  };

  void print_failure(const FailedSeed<Outcome>& failure, const Arguments& a) const {
    std::cout << "seed " << failure.seed << ": " << failure.failure << "\n  replay: " << name
              << " --seed " << failure.seed;
    for (const std::string& rule : a.off) std::cout << " --disable " << rule;
    std::cout << " --trace" << std::endl;
  }

  int run_one(const Arguments& a) const {
    const Outcome outcome = run(*a.seed, a.off, a.trace);
    if (outcome.failure) {
      print_failure({*a.seed, *outcome.failure}, a);
      return 1;
    }
    std::cout << "seed " << *a.seed << ": ok: " << summary(outcome) << '\n';
    return 0;
  }

  int run_many(const Arguments& a) const {
    constexpr std::size_t kMostFailures = 10;
    const auto result = run_seeds(
        a.first, a.seeds, a.jobs, kMostFailures,
        [&](std::uint64_t seed) { return run(seed, a.off, false); },
        [&](const FailedSeed<Outcome>& failure) { print_failure(failure, a); });
    std::cout << result.seeds << " seeds from " << a.first << ": " << result.failures.size()
              << " failed; " << summary(result.sum) << '\n';
    if (!a.situations.empty() && !add_situations_to(a.situations)) {
      std::cerr << name << ": can't write " << a.situations << ": " << std::strerror(errno) << '\n';
      return 2;
    }
    return result.failures.empty() ? 0 : 1;
  }

  int check_rules(const Arguments& a) const {
    bool all = true;
    std::cout << "| rule switched off | first failing seed | how it failed |\n|---|---|---|\n";
    for (const std::string& rule : rules) {
      const auto found = first_failure(
          a.first, a.seeds, [&](std::uint64_t seed) { return run(seed, {rule}, false); },
          [&](std::uint64_t seed) { return run(seed, {}, false); });
      all = all && found.has_value();
      std::cout << "| `" << rule << "` | " << (found ? std::to_string(found->seed) : "none")
                << " | " << (found ? found->failure : "not caught") << " |" << std::endl;
    }
    return all ? 0 : 1;
  }
};

}  // namespace cepheus::sim
