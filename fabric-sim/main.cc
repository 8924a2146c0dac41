// cepheus-sim: Cepheus on virtual time, by seeds, or one of the papers' experiments. One seed
// prints its trace's hash; many run on all cores and print a line for each failure, with the
// command that repeats it. The options --shrink and --mutation-check, and experiments, are runs of
// their own.
//
// Exit code 0: all invariants held, or the experiment is done; 1: some did not, or it failed; 2:
// bad usage.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "fabric-sim/checked/first_seed.h"
#include "fabric-sim/checked/mutation_check.h"
#include "fabric-sim/checked/run_seed.h"
#include "fabric-sim/checked/seeds.h"
#include "fabric-sim/checked/shrink.h"
#include "fabric-sim/checked/situations.h"
#include "fabric-sim/experiments/command.h"
#include "nic-emulator/engine/nic_profile.h"
#include "support/command_line/command_line.h"
#include "support/command_line/process.h"

namespace cepheus::sim {
namespace {

constexpr int kAllHeld = 0;
constexpr int kViolated = 1;
constexpr int kUsage = 2;

int refuse(const std::string& why) {
  std::cerr << "cepheus-sim: " << why << '\n';
  return kUsage;
}

struct Arguments {
  std::uint64_t seeds = 2000;
  std::uint64_t first = first_seed();
  unsigned jobs = std::max(std::thread::hardware_concurrency(), 1u);
  std::optional<std::uint64_t> seed;
  bool trace = false;
  std::string record;
  bool shrink = false;
  std::string without_text;
  OmittedParts without;
  bool mutation_check = false;
  std::size_t keep_going = 10;
  std::string situations;
  std::vector<std::string> disabled;
  PlanOptions plan;
};

struct PlanFlag {
  const char* name;
  bool PlanOptions::*option;
  const char* help;
};
constexpr PlanFlag kPlanFlags[] = {
    {"--fabrics", &PlanOptions::fabrics, "use leaf-spine fabrics and fat-trees"},
    {"--incidents", &PlanOptions::incidents,
     "add one to five incidents to each seed: deaths, restarts, stalls, forgery"},
    {"--far", &PlanOptions::far, "let the delays of hosts differ by up to 2 ms"},
    {"--host-sync", &PlanOptions::host_sync, "let hosts synchronise PSNs, not switches"},
    {"--writes", &PlanOptions::writes, "let members write into each other's regions, too"},
    {"--per-request", &PlanOptions::per_request,
     "let members write as with --writes, each WRITE announced by a packet"},
    {"--sender-groups", &PlanOptions::sender_groups,
     "use sender groups (MC-RDMA), with one fixed sender each"},
    {"--congestion", &PlanOptions::congestion,
     "use short queues that mark packets, and lossless links with small buffers"},
    {"--long-turns", &PlanOptions::long_turns,
     "let turns have 2^22 to 2^32 packets, with PSNs that soon wrap"},
    {"--cuts", &PlanOptions::cuts, "use equal-cost paths, and trunks that fail"},
    {"--reductions", &PlanOptions::reductions,
     "let every group reduce, instead of sending messages"}};

std::string replay_command(std::uint64_t seed, const Arguments& a) {
  std::string command = "cepheus-sim --seed " + std::to_string(seed);
  if (a.plan.switches) command += " --switches " + std::to_string(*a.plan.switches);
  for (const PlanFlag& flag : kPlanFlags) {
    if (a.plan.*flag.option) command += std::string(" ") + flag.name;
  }
  if (!a.plan.nic.empty()) command += " --nic " + a.plan.nic;
  for (const std::string& rule : a.disabled) command += " --disable " + rule;
  if (!a.without.empty()) command += " --without " + to_text(a.without);
  return command + " --trace";
}

void print_failure(std::uint64_t seed, const Finding& finding, const Arguments& a) {
  const double us = static_cast<double>(finding.at.time_since_epoch().count()) / 1000;
  std::printf("seed %llu: %s violated at %.3f us: %s\n  replay: %s\n",
              static_cast<unsigned long long>(seed), to_string(finding.invariant), us,
              finding.text.c_str(), replay_command(seed, a).c_str());
}

int run_one(const Arguments& a) {
  const auto plan = without(make_plan(*a.seed, a.plan), a.without);
  if (!plan) return refuse("--without: " + plan.error().text);
  std::ofstream recording;
  if (!a.record.empty()) {
    recording.open(a.record);
    if (!recording) return refuse("can't write " + a.record + ": " + std::strerror(errno));
  }
  std::ostream* const trace = a.trace ? &std::cout : nullptr;
  const Outcome o = run_plan(*plan, trace, recording.is_open() ? &recording : nullptr);
  if (recording.is_open() && !recording.flush()) {
    return refuse(a.record + " is incomplete: " + std::strerror(errno));
  }
  std::cout.flush();
  std::printf(
      "seed %llu: trace %016llx, %llu events, %.3f ms virtual time\n",
      static_cast<unsigned long long>(*a.seed), static_cast<unsigned long long>(o.trace_hash),
      static_cast<unsigned long long>(o.events), static_cast<double>(o.virtual_time.count()) / 1e6);
  if (!o.failure) return kAllHeld;
  print_failure(*a.seed, *o.failure, a);
  return kViolated;
}

std::string sizes_of(const ScenarioPlan& plan) {
  std::size_t messages = 0;
  for (const GroupPlan& group : plan.groups) messages += group.messages.size();
  return std::to_string(plan.topology.hosts.size()) + " hosts, " +
         std::to_string(plan.topology.switches.size()) + " switches, " +
         std::to_string(plan.topology.trunks.size()) + " trunks, " +
         std::to_string(plan.groups.size()) + " groups, " + std::to_string(messages) + " messages";
}

int run_shrink(Arguments a) {
  const auto shrunk = shrink(*a.seed, a.plan, a.without);
  if (!shrunk) {
    std::printf("seed %llu holds: nothing to shrink\n", static_cast<unsigned long long>(*a.seed));
    return kAllHeld;
  }
  std::printf("%s\nfail in the same way as %s, found in %zu runs\n", sizes_of(shrunk->plan).c_str(),
              sizes_of(make_plan(*a.seed, a.plan)).c_str(), shrunk->runs);
  a.without = shrunk->without;
  print_failure(*a.seed, *shrunk->outcome.failure, a);
  return kViolated;
}

int run_many(const Arguments& a) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_seeds(
      a.first, a.seeds, a.jobs, a.keep_going,
      [&](std::uint64_t seed) { return run_seed(seed, a.plan); },
      [&](const FailedSeed<Outcome>& failed) {
        print_failure(failed.seed, failed.failure, a);
        std::fflush(stdout);
      });
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
  const Outcome& sum = result.sum;
  std::printf("%llu seeds from %llu, %zu failed; %llu events, %.2f ms a seed\n", n(result.seeds),
              n(a.first), result.failures.size(), n(sum.events),
              took.count() / static_cast<double>(std::max<std::uint64_t>(result.seeds, 1)));
  std::printf(
      "seen: %llu turns, %llu gated packets, %llu time-outs, %llu NAKs, %llu RNR NAKs, "
      "%llu evicted, %llu spoofed, %llu WRITEs, %llu of their packets refused, %llu marks, "
      "%llu pauses, %llu skipped PSNs, %llu members that gave up, %llu units reduced\n",
      n(sum.turns), n(sum.gated), n(sum.time_outs), n(sum.naks), n(sum.rnr_naks), n(sum.evicted),
      n(sum.spoofed), n(sum.writes), n(sum.writes_refused), n(sum.marked), n(sum.pauses),
      n(sum.jumped), n(sum.gave_up), n(sum.reduced));
  if (!a.situations.empty() && !add_situations_to(a.situations)) {
    return refuse("can't write " + a.situations + ": " + std::strerror(errno));
  }
  return result.failures.empty() ? kAllHeld : kViolated;
}

int run_mutation_check(const Arguments& a) {
  const auto results = check_mutations(a.first, a.seeds, a.plan);
  std::cout << to_table(results);
  for (const MutationResult& r : results) {
    if (!r.caught) return kViolated;
  }
  return kAllHeld;
}

CLI::App& add_experiment(CLI::App& app, ExperimentCommand& command) {
  CLI::App& sub = *app.add_subcommand("experiment", "repeat a figure of the papers");
  command_line::set_example(sub, "cepheus-sim experiment --quick cepheus-fig12");
  CLI::Option* const list = sub.add_flag("--list", command.list, "list the experiments");
  CLI::Option* const name =
      sub.add_option("NAME", command.name, "run this experiment")->type_name("");
  list->excludes(name);
  sub.add_flag("--quick", command.options.quick, "take fewer and smaller points");
  sub.add_option("--seeds", command.options.seeds, "take N random sets of losses and places")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  sub.add_option("--members", command.options.members,
                 "gleam-fig15: take groups of N members alone (64 or 512)")
      ->type_name("N")
      ->check(CLI::IsMember({64, 512}));
  sub.add_option("--loss", command.options.loss,
                 "gleam-fig15 and gleam-fig16: take this rate of loss alone")
      ->type_name("RATE")
      ->check(CLI::Range(1e-6, 0.1));
  sub.add_option("--cdf", command.options.cdf,
                 "draw message sizes from FILE with lines 'BYTES PERCENT' (default: the "
                 "experiment's)")
      ->type_name("FILE");
  sub.add_option("--congestion", command.options.congestion,
                 "set the senders' congestion control: orig or hpcc, then changes, as in "
                 "hpcc,ce-echo")
      ->type_name("CONTROL")
      ->capture_default_str();
  sub.add_option("--json", command.json, "write the points to FILE")->type_name("FILE");
  return sub;
}

void add_seeds(CLI::App& app, Arguments& a) {
  app.add_option("--seeds", a.seeds, "run N seeds")->type_name("N")->capture_default_str();
  app.add_option("--first", a.first, "begin with seed N (default: one of today's)")->type_name("N");
  app.add_option("--jobs", a.jobs, "run N seeds at a time (default: one on each core)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  app.add_option("--seed", a.seed, "run this seed only")->type_name("N");
  app.add_option("--failures", a.keep_going, "stop after N failing seeds")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--situations", a.situations,
                 "append each situation, and how often the seeds met it, to FILE")
      ->type_name("FILE")
      ->excludes("--seed");
  app.add_flag("--trace", a.trace, "print every packet; with --seed")->needs("--seed");
  app.add_option("--record", a.record, "write a timeline for ui.perfetto.dev; with --seed")
      ->type_name("FILE")
      ->needs("--seed");
  app.add_flag("--shrink", a.shrink, "leave out all parts that the failure does not need")
      ->needs("--seed");
  app.add_option("--without", a.without_text, "leave out these parts, as --shrink names them")
      ->type_name("PARTS")
      ->needs("--seed");
  app.add_option("--disable", a.disabled, "switch this rule of the protocol off; repeatable")
      ->type_name("RULE");
  app.add_flag("--mutation-check", a.mutation_check,
               "switch each safety rule off in turn and print the first seed that fails");
}

// What a seed has.
void add_plan(CLI::App& app, PlanOptions& plan) {
  CLI::Option* const switches =
      app.add_option("--switches", plan.switches,
                     "put N switches into the tree (default: the seed's choice)")
          ->type_name("N")
          ->check(CLI::Range(1, 7));
  std::vector<std::string> makes;
  for (const rnic::NicProfile& profile : rnic::nic_profiles()) makes.emplace_back(profile.name);
  app.add_option("--nic", plan.nic, "give all hosts NICs of this make (default: the seed's choice)")
      ->type_name("MAKE")
      ->check(CLI::IsMember(makes));
  for (const PlanFlag& flag : kPlanFlags) app.add_flag(flag.name, plan.*flag.option, flag.help);
  app.get_option("--fabrics")->excludes(switches);
  CLI::Option* const reductions = app.get_option("--reductions");
  for (const char* other :
       {"--host-sync", "--writes", "--per-request", "--sender-groups", "--long-turns"}) {
    reductions->excludes(app.get_option(other));
  }
}

int run(int argc, char** argv) {
  Arguments a;
  ExperimentCommand experiment;
  CLI::App app{"Simulate NICs, switches and faulty links on virtual time, one run per seed."};
  command_line::set_up(app, "cepheus-sim", CEPHEUS_VERSION);
  add_seeds(app, a);
  add_plan(app, a.plan);
  const CLI::App& sub = add_experiment(app, experiment);
  command_line::set_example(
      app, "cepheus-sim --seeds 100 --incidents",
      "Exit status: 0 all seeds hold, or the experiment is done; 1 a failure; 2 wrong usage.");
  if (const auto code = command_line::parse(app, argc, argv)) return *code;
  for (const std::string& rule : a.disabled) {
    if (net::set_rule(a.plan.rules, rule, false)) continue;
    std::string known;
    for (const net::Rule& r : net::kRules) {
      if (!net::is_fixed(r)) known += std::string(" ") + r.name;
    }
    return refuse("--disable " + rule + ": there is no such rule; the rules are" + known);
  }
  if (a.mutation_check && net::kRulesAreFixed) {
    return refuse(
        "--mutation-check: this build has no switches for safety rules; configure one with "
        "-DBUILD_TESTING=ON");
  }
  const auto without = omitted_from(a.without_text);
  if (!without) return refuse("--without: " + without.error().text);
  a.without = *without;
  if (sub.parsed()) return run_experiment(experiment);
  if (a.mutation_check) return run_mutation_check(a);
  if (a.shrink) return run_shrink(a);
  return a.seed ? run_one(a) : run_many(a);
}

}  // namespace
}  // namespace cepheus::sim

int main(int argc, char** argv) {
  return cepheus::command_line::run_program("cepheus-sim",
                                            [&] { return cepheus::sim::run(argc, argv); });
}
