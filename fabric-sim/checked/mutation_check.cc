#include "fabric-sim/checked/mutation_check.h"

#include "fabric-sim/checked/run_seed.h"
#include "fabric-sim/checked/seeds.h"

namespace cepheus::sim {
namespace {

using Plan = PlanOptions;

struct Check {
  const char* rule;
  std::vector<bool Plan::*> parts = {};  // plans on which the rule matters
  const char* where = "";
};

constexpr const char* kHostSync = "PSN synchronisation";
constexpr const char* kWrites = "with WRITEs";
constexpr const char* kAnnounced = "announced WRITEs";
constexpr const char* kLossless = "lossless links";
constexpr const char* kSenders = "sender groups";
constexpr const char* kReductions = "reductions";

std::vector<Check> all_checks() {
  return {
      {"nak_ordering"},
      {"lost_aggregate_answer"},
      {"rnr_ordering"},
      {"nak_once", {&Plan::far}},
      {"request_limit"},
      {"gate"},
      {"old_duplicate_answer"},
      {"psn_from_state"},
      {"named_turns"},
      {"port_binding", {&Plan::incidents}},
      {"eviction_counts", {&Plan::incidents}},
      {"loss_ends", {&Plan::incidents}},
      {"lagging_is_silence", {&Plan::incidents}},
      {"presence_answer", {&Plan::incidents}},
      {"dark_trunks", {&Plan::cuts}},
      {"trunk_withdrawals", {&Plan::cuts}},
      {"every_drop_counted"},
      {"least_path_mtu"},
      {"write_bounds", {&Plan::writes}, kWrites},
      {"newest_publication", {&Plan::writes}, kWrites},
      {"announced_by_psn", {&Plan::per_request}, kAnnounced},
      {"pause_headroom", {&Plan::congestion}, kLossless},
      {"nak_ordering", {&Plan::host_sync}, kHostSync},
      {"lost_aggregate_answer", {&Plan::host_sync}, kHostSync},
      {"rnr_ordering", {&Plan::host_sync}, kHostSync},
      {"gate", {&Plan::host_sync}, kHostSync},
      {"old_duplicate_answer", {&Plan::host_sync}, kHostSync},
      {"newcomer_nak_once", {&Plan::host_sync}, kHostSync},
      {"write_bounds", {&Plan::writes, &Plan::per_request}, kAnnounced},
      {"sender_ack_minimum", {&Plan::sender_groups}, kSenders},
      {"sender_nak_minimum", {&Plan::sender_groups}, kSenders},
      {"sender_unknown", {&Plan::incidents, &Plan::sender_groups}, kSenders},
      {"least_path_mtu", {&Plan::sender_groups}, kSenders},
      {"sender_rewritten", {&Plan::incidents, &Plan::sender_groups}, kSenders},
      {"write_bounds", {&Plan::writes, &Plan::sender_groups}, kSenders},
      {"reduction_all_paths", {&Plan::reductions}, kReductions},
      {"reduction_add_once", {&Plan::reductions}, kReductions},
      {"reduction_in_pairs", {&Plan::reductions}, kReductions},
      {"reduction_order", {&Plan::reductions}, kReductions},
      {"reduction_in_order", {&Plan::reductions}, kReductions},
      {"reduction_duplicates", {&Plan::reductions}, kReductions},
      {"reduction_repeats", {&Plan::reductions}, kReductions},
      {"reduction_probe", {&Plan::incidents, &Plan::reductions}, kReductions},
      {"port_binding", {&Plan::incidents, &Plan::reductions}, kReductions},
  };
}

MutationResult check_mutation(const Check& check, std::uint64_t first_seed, std::uint64_t seeds,
                              const Plan& options) {
  MutationResult result;
  result.rule = check.rule;
  result.where = check.where;
  Plan sound = options;
  for (bool Plan::*const part : check.parts) sound.*part = true;
  Plan unsafe = sound;
  net::set_rule(unsafe.rules, check.rule, false);
  const auto found = first_failure(
      first_seed, seeds, [&](std::uint64_t seed) { return run_seed(seed, unsafe); },
      [&](std::uint64_t seed) { return run_seed(seed, sound); });
  if (found) {
    result.caught = true;
    result.seed = found->seed;
    result.failure = found->failure;
  }
  return result;
}

}  // namespace

std::vector<MutationResult> check_mutations(std::uint64_t first_seed, std::uint64_t seeds,
                                            const PlanOptions& options) {
  std::vector<MutationResult> results;
  for (const Check& check : all_checks()) {
    results.push_back(check_mutation(check, first_seed, seeds, options));
  }
  return results;
}

std::string to_table(const std::vector<MutationResult>& results) {
  std::string table = "| rule switched off | first failing seed | invariant | how it failed |\n";
  table += "|---|---|---|---|\n";
  for (const MutationResult& r : results) {
    table += "| `" + r.rule;
    table += (r.where.empty() ? "`" : "`, " + r.where) + " | ";
    table += r.caught ? std::to_string(r.seed) + " | " + to_string(r.failure.invariant) + " | " +
                            r.failure.text + " |\n"
                      : "none | | not caught |\n";
  }
  return table;
}

}  // namespace cepheus::sim
