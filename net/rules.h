// The protocol's rules, which can be turned off one by one, and its policies, by name.
//
// The protocol has all rules on. The simulator's mutation check turns each safety rule off and
// expects some seed to fail; docs/protocol.md lists the first failing seed of each. Builds without
// tests define CEPHEUS_RULES_ARE_FIXED: there only the rules of experiments can be turned off.
#pragma once

#include <cstdint>
#include <string_view>

namespace cepheus::net {

enum class SourceChange : std::uint8_t { kRebase, kHostSync };
// Cepheus; Gleam; Gleam's appendix C.
enum class WriteMode : std::uint8_t { kRegions, kPerRequest, kSameKey, kNone };
enum class CnpPolicy : std::uint8_t { kAll, kWorstPath, kTmcf };  // MC-RDMA; Cepheus III-D; TMCF
const char* to_string(WriteMode);                                 // as in a topology file

#ifdef CEPHEUS_RULES_ARE_FIXED
inline constexpr bool kRulesAreFixed = true;
#define CEPHEUS_FLAG_kSafety static constexpr bool
#else
inline constexpr bool kRulesAreFixed = false;
#define CEPHEUS_FLAG_kSafety bool
#endif
#define CEPHEUS_FLAG_kSpeed CEPHEUS_FLAG_kSafety
#define CEPHEUS_FLAG_kAblation bool

struct Rules {
#define CEPHEUS_RULE(name, kind, help) CEPHEUS_FLAG_##kind name = true;
#include "net/rules.def"
  // Policies.
  SourceChange source_change = SourceChange::kRebase;
  CnpPolicy cnp_policy = CnpPolicy::kWorstPath;
  WriteMode write_mode = WriteMode::kRegions;

  bool operator==(const Rules&) const = default;
};

#undef CEPHEUS_FLAG_kSafety
#undef CEPHEUS_FLAG_kSpeed
#undef CEPHEUS_FLAG_kAblation

enum class RuleKind : std::uint8_t { kSafety, kSpeed, kAblation };
struct Rule {
  const char* name;
  RuleKind kind;
  const char* help;
};
inline constexpr Rule kRules[] = {
#define CEPHEUS_RULE(name, kind, help) {#name, RuleKind::kind, help},
#include "net/rules.def"
};

constexpr bool is_fixed(const Rule& rule) {
  return kRulesAreFixed && rule.kind != RuleKind::kAblation;
}

// Sets the rule called `name` ("nak_ordering"); false if no such rule exists, or if it is fixed.
bool set_rule(Rules& rules, std::string_view name, bool on);

}  // namespace cepheus::net
