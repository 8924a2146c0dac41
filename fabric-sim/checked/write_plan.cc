#include "fabric-sim/checked/write_plan.h"

#include <algorithm>

#include "fabric-sim/core/random.h"
#include "wire/announcement.h"

namespace cepheus::sim {
namespace {

constexpr std::uint64_t kWriteStream = 0x3'217E'0F0F;  // the rest of the seed's plan stays as it is

void make_writes(Random& random, GroupPlan& group, std::uint32_t mtu, bool untold_ends) {
  std::uint32_t largest = mtu;
  for (const MessagePlan& m : group.messages) largest = std::max(largest, m.bytes);
  // Few places, so that WRITEs go over what others have written.
  const std::uint32_t places = random.between(1, 3);
  group.region_bytes = places * largest;
  for (std::size_t i = 0; i < group.messages.size(); ++i) {
    MessagePlan& m = group.messages[i];
    if (random.chance(0.3)) continue;
    const auto place = static_cast<std::uint32_t>(random.below(places));
    m.offset = place * largest + static_cast<std::uint32_t>(random.below(largest - m.bytes + 1));
    // The next source has to know that this one is over: by immediate, or beside the network.
    const bool is_runs_last =
        i + 1 == group.messages.size() || group.messages[i + 1].source != m.source;
    const bool is_told = (is_runs_last && !untold_ends) || random.chance(0.5);
    m.kind = is_told ? MessageKind::kWriteImm : MessageKind::kWrite;
  }
  MessagePlan& last = group.messages.back();
  if (!random.chance(0.2) || last.bytes == 0) return;
  last.kind = random.chance(0.5) ? MessageKind::kWriteImm : MessageKind::kWrite;
  last.offset = group.region_bytes - static_cast<std::uint32_t>(random.below(last.bytes));
  last.outside = true;
}

}  // namespace

void use_writes(ScenarioPlan& plan, bool untold_ends) {
  Random random(plan.seed ^ kWriteStream);
  for (GroupPlan& group : plan.groups) {
    group.in_turns = true;
    make_writes(random, group, plan.transport.path_mtu, untold_ends);
  }
}

void use_announcements(ScenarioPlan& plan) {
  const std::size_t most = wire::Announcement::most_members(plan.transport.path_mtu);
  for (net::SwitchSpec& spec : plan.topology.switches) {
    spec.config.rules.write_mode = net::WriteMode::kPerRequest;
  }
  for (GroupPlan& group : plan.groups) {
    group.is_announced = group.members.size() <= most;
    if (group.is_announced) continue;
    group.region_bytes = 0;
    for (MessagePlan& m : group.messages) m = {m.source, m.bytes};
  }
}

}  // namespace cepheus::sim
