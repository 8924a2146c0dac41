#include "switch-emulator/engine/strategies.h"

#include "switch-emulator/engine/numbering.h"
#include "switch-emulator/engine/one_source.h"

namespace cepheus::fabric {
namespace {

const OneSource kOneSource;
const Rebasing kRebasing;
const HostSync kHostSync;
const HoldNaks kHoldNaks;
const RewriteNaks kRewriteNaks;

}  // namespace

Strategies Strategies::of(const SwitchConfig& config) {
  const Rules& rules = config.rules;
  const bool rebases = rules.source_change == net::SourceChange::kRebase;
  const bool holds = rules.nak_policy == net::NakPolicy::kHold;
  return {&kOneSource, rebases ? static_cast<const Numbering*>(&kRebasing) : &kHostSync,
          holds ? static_cast<const NakPolicy*>(&kHoldNaks) : &kRewriteNaks, rules.cnp_policy,
          config.cnp_window};
}

}  // namespace cepheus::fabric
