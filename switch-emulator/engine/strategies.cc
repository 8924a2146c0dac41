#include "switch-emulator/engine/strategies.h"

#include "switch-emulator/engine/numbering.h"
#include "switch-emulator/engine/one_source.h"

namespace cepheus::fabric {
namespace {

const OneSource kOneSource;
const Rebasing kRebasing;
const HostSync kHostSync;
}  // namespace

Strategies Strategies::of(const SwitchConfig& config) {
  const Rules& rules = config.rules;
  const bool rebases = rules.source_change == net::SourceChange::kRebase;
  return {&kOneSource, rebases ? static_cast<const Numbering*>(&kRebasing) : &kHostSync,
          rules.write_mode, rules.cnp_policy, config.cnp_window};
}

}  // namespace cepheus::fabric
