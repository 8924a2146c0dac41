#include "net/rules.h"

namespace cepheus::net {
namespace {

struct NamedRule {
  const char* name;
  bool Rules::*flag;
};
constexpr NamedRule kRules[] = {
    {"nak_ordering", &Rules::nak_ordering},
    {"lost_aggregate_answer", &Rules::lost_aggregate_answer},
    {"rnr_ordering", &Rules::rnr_ordering},
    {"nak_once", &Rules::nak_once},
    {"gate", &Rules::gate},
    {"old_duplicate_answer", &Rules::old_duplicate_answer},
    {"psn_from_state", &Rules::psn_from_state},
    {"named_turns", &Rules::named_turns},
    {"port_binding", &Rules::port_binding},
    {"eviction_counts", &Rules::eviction_counts},
    {"loss_ends", &Rules::loss_ends},
    {"lagging_is_silence", &Rules::lagging_is_silence},
    {"dark_trunks", &Rules::dark_trunks},
    {"trunk_withdrawals", &Rules::trunk_withdrawals},
    {"every_drop_counted", &Rules::every_drop_counted},
    {"write_bounds", &Rules::write_bounds},
    {"newest_publication", &Rules::newest_publication},
    {"announced_by_psn", &Rules::announced_by_psn},
    {"pause_headroom", &Rules::pause_headroom},
    {"sender_ack_minimum", &Rules::sender_ack_minimum},
    {"sender_nak_minimum", &Rules::sender_nak_minimum},
    {"sender_unknown", &Rules::sender_unknown},
    {"sender_rewritten", &Rules::sender_rewritten},
    {"newcomer_nak_once", &Rules::newcomer_nak_once},
    {"handover_rnr", &Rules::handover_rnr},
    {"recheck_held_nak", &Rules::recheck_held_nak},
    {"several_naks", &Rules::several_naks},
    {"sender_nak_once", &Rules::sender_nak_once},
    {"sender_ask_again", &Rules::sender_ask_again},
    {"fewest_groups", &Rules::fewest_groups},
};

}  // namespace

const char* const kSafetyRules[] = {
    "nak_ordering",
    "lost_aggregate_answer",
    "rnr_ordering",
    "nak_once",
    "gate",
    "old_duplicate_answer",
    "psn_from_state",
    "named_turns",
    "port_binding",
    "eviction_counts",
    "loss_ends",
    "lagging_is_silence",
    "dark_trunks",
    "trunk_withdrawals",
    "every_drop_counted",
    "write_bounds",
    "newest_publication",
    "announced_by_psn",
    "pause_headroom",
    nullptr,
};

const char* to_string(WriteMode mode) {
  switch (mode) {
    case WriteMode::kRegions:
      return "regions";
    case WriteMode::kPerRequest:
      return "per-request";
    case WriteMode::kSameKey:
      return "same-key";
    case WriteMode::kNone:
      return "none";
  }
  return "unknown";
}

bool set_rule(Rules& rules, std::string_view name, bool on) {
  for (const NamedRule& rule : kRules) {
    if (name != rule.name) continue;
    rules.*rule.flag = on;
    return true;
  }
  return false;
}

}  // namespace cepheus::net
