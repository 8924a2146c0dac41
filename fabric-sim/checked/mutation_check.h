// Is every safety rule needed, and would we notice if it were gone? Each is switched off in turn;
// some seed must fail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric-sim/checked/findings.h"

namespace cepheus::sim {

// Safety rules that matter where switches leave PSNs to hosts, the last of them only there.
inline constexpr const char* kHostSyncRules[] = {"nak_ordering",         "lost_aggregate_answer",
                                                 "rnr_ordering",         "gate",
                                                 "old_duplicate_answer", "newcomer_nak_once"};

// ... and where WRITEs are announced one by one.
inline constexpr const char* kPerRequestRules[] = {"write_bounds"};

// ... and where groups have one fixed sender.
inline constexpr const char* kSenderGroupRules[] = {"sender_ack_minimum", "sender_nak_minimum",
                                                    "sender_unknown", "sender_rewritten",
                                                    "write_bounds"};

struct MutationResult {
  std::string rule;
  bool host_sync = false;
  bool writes = false;
  bool per_request = false;
  bool congestion = false;
  bool sender_groups = false;
  bool caught = false;
  std::uint64_t seed = 0;  // the first that fails without the rule, and not with it
  Finding finding{};       // ... and how
};

// Looks for each rule's first seed in [first_seed, first_seed + seeds) that fails without it and
// holds with it: net::kSafetyRules, then kHostSyncRules, kPerRequestRules and kSenderGroupRules.
std::vector<MutationResult> check_mutations(std::uint64_t first_seed, std::uint64_t seeds);
// The list as a table in Markdown, as docs/protocol.md has it.
std::string to_table(const std::vector<MutationResult>& results);

}  // namespace cepheus::sim
