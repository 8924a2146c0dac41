#include "fabric-sim/checked/host_sync_plan.h"

#include <algorithm>

#include "fabric-sim/core/random.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kHostSyncStream =
    0x5'A7C'5E7C;  // the rest of the seed's plan stays as it is

}  // namespace

void use_host_sync(ScenarioPlan& plan) {
  Random random(plan.seed ^ kHostSyncStream);
  for (net::SwitchSpec& spec : plan.topology.switches) {
    spec.config.rules.source_change = net::SourceChange::kHostSync;
  }
  for (GroupPlan& group : plan.groups) group.in_turns = true;
  // Who is told to wait for a last source says nothing for 82 ms at most: that is no silence yet, and
  // senders outlast a silence.
  plan.transport.least_silence = 300ms;
  plan.transport.timeout_code = std::max<std::uint8_t>(plan.transport.timeout_code, 10);
  plan.settle = 4s;
  // A queue pair that is stopped says nothing, for as long as a driver takes. A program that computes
  // before it stops its own is late, but not taken for dead.
  const wire::Duration longest = plan.transport.silence() / 3;
  plan.transport.sync_pause = random.between(5us, random.chance(0.7) ? 100us : 5ms);
  plan.transport.late_sync =
      random.chance(0.6) ? random.between(0us, 100us) : random.between(500us, longest);
}

}  // namespace cepheus::sim
