#include "fabric-sim/checked/mutation_check.h"

#include <string_view>

#include "fabric-sim/checked/group_scenario.h"

namespace cepheus::sim {
namespace {

MutationResult check_mutation(const char* rule, PlanOptions options, std::uint64_t first_seed,
                              std::uint64_t seeds) {
  MutationResult result;
  result.rule = rule;
  result.host_sync = options.host_sync;
  // Rules about deaths and forgery need deaths and forgery, one about late answers late answers.
  const std::string_view name = rule;
  options.incidents = name == "eviction_counts" || name == "loss_ends" ||
                      name == "lagging_is_silence" || name == "port_binding";
  options.far = name == "nak_once";
  options.per_request |= name == "announced_by_psn";
  result.per_request = options.per_request;
  options.writes = result.writes = name == "write_bounds" || name == "newest_publication";
  options.congestion = result.congestion = name == "pause_headroom";
  result.sender_groups = options.sender_groups;
  options.incidents |= name == "sender_unknown" || name == "sender_rewritten";
  options.cuts = name == "dark_trunks" || name == "trunk_withdrawals";
  const PlanOptions sound = options;
  net::set_rule(options.rules, rule, false);
  for (std::uint64_t seed = first_seed; seed - first_seed < seeds; ++seed) {
    const Outcome outcome = run_seed(seed, options);
    // A seed that fails with every rule on says nothing about this one.
    if (!outcome.finding || run_seed(seed, sound).finding) continue;
    result.caught = true;
    result.seed = seed;
    result.finding = *outcome.finding;
    break;
  }
  return result;
}

}  // namespace

std::vector<MutationResult> check_mutations(std::uint64_t first_seed, std::uint64_t seeds) {
  std::vector<MutationResult> results;
  for (const char* const* rule = net::kSafetyRules; *rule != nullptr; ++rule) {
    results.push_back(check_mutation(*rule, {}, first_seed, seeds));
  }
  PlanOptions host_sync, per_request;
  host_sync.host_sync = per_request.per_request = true;
  for (const char* const rule : kHostSyncRules) {
    results.push_back(check_mutation(rule, host_sync, first_seed, seeds));
  }
  for (const char* const rule : kPerRequestRules) {
    results.push_back(check_mutation(rule, per_request, first_seed, seeds));
  }
  PlanOptions sender_groups;
  sender_groups.sender_groups = true;
  for (const char* const rule : kSenderGroupRules) {
    results.push_back(check_mutation(rule, sender_groups, first_seed, seeds));
  }
  return results;
}

std::string to_table(const std::vector<MutationResult>& results) {
  std::string table = "| rule switched off | first failing seed | invariant | how it failed |\n";
  table += "|---|---|---|---|\n";
  for (const MutationResult& r : results) {
    table += "| `" + r.rule;
    table += r.sender_groups ? "`, sender groups | "
             : r.host_sync   ? "`, PSN synchronisation | "
             : r.per_request ? "`, announced WRITEs | "
             : r.writes      ? "`, with WRITEs | "
             : r.congestion  ? "`, lossless links | "
                             : "` | ";
    table += r.caught ? std::to_string(r.seed) + " | " + to_string(r.finding.invariant) + " | " +
                            r.finding.text + " |\n"
                      : "none | | not caught |\n";
  }
  return table;
}

}  // namespace cepheus::sim
