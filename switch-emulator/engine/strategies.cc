#include "switch-emulator/engine/strategies.h"

#include "switch-emulator/engine/numbering.h"
#include "switch-emulator/engine/one_source.h"
#include "switch-emulator/engine/write_mode.h"

namespace cepheus::fabric {
namespace {

const OneSource kOneSource;
const Rebasing kRebasing;
const HostSync kHostSync;
const WritesToRegions kWritesToRegions;
const AnnouncedWrites kAnnouncedWrites;
const WritesAsTheyAre kWritesAsTheyAre;
const NoWrites kNoWrites;

const WriteMode* write_mode_of(net::WriteMode mode) {
  switch (mode) {
    case net::WriteMode::kRegions:
      break;
    case net::WriteMode::kPerRequest:
      return &kAnnouncedWrites;
    case net::WriteMode::kSameKey:
      return &kWritesAsTheyAre;
    case net::WriteMode::kNone:
      return &kNoWrites;
  }
  return &kWritesToRegions;
}

}  // namespace

Strategies Strategies::of(const SwitchConfig& config) {
  const Rules& rules = config.rules;
  const bool rebases = rules.source_change == net::SourceChange::kRebase;
  return {&kOneSource, rebases ? static_cast<const Numbering*>(&kRebasing) : &kHostSync,
          write_mode_of(rules.write_mode), rules.cnp_policy, config.cnp_window};
}

}  // namespace cepheus::fabric
