#include "fabric-sim/checked/reductions/reduction_plan.h"

#include <algorithm>
#include <optional>

#include "arithmetic/combine.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostMemory = 4 << 20;  // bytes of all members' slots
constexpr std::size_t kFewMembers = 16;
constexpr std::size_t kMostLong = 3;

bool has_marks(const net::Topology& topology) {
  return std::ranges::any_of(topology.hosts, [](const auto& host) { return host.down.ecn.on; });
}

// The least valid unit of at least `bytes`.
std::uint32_t whole_values(std::uint32_t bytes) {
  constexpr std::uint32_t kStep = wire::MrpReduction::kUnitStep;
  return (bytes + kStep - 1) / kStep * kStep;
}

// Queues mark only if they fill.
void make_long(Random& random, std::uint32_t path_mtu, ReductionPlan& plan) {
  plan.skipped = 0;
  plan.reduction.unit = static_cast<std::uint16_t>(path_mtu);
  plan.reduction.window = static_cast<std::uint16_t>(8u << random.below(4));
  for (ReductionOperation& one : plan.operations) {
    one = {mcast::ReductionUnits::kOr, static_cast<std::uint32_t>(random.below(32 * path_mtu))};
  }
}

// Half of the operations with data reduce values instead of plain bytes. The draws are of their own,
// so that all else in a seed stays as it was without them. Half of the groups add
// floating-point numbers, too.
void draw_kinds(const ScenarioPlan& scenario, ReductionPlan& plan) {
  Random random(scenario.seed ^ plan.group.id.value() ^ 0xA717);
  Random sums(scenario.seed ^ plan.group.id.value() ^ 0x50D5);
  if (sums.chance(0.5)) plan.reduction.kind = wire::MrpReduction::kOrdered;
  for (ReductionOperation& one : plan.operations) {
    if (one.bytes == 0 || random.chance(0.5)) continue;
    mcast::ReductionUnits::Kind kind;
    std::optional<arithmetic::Combiner> combiner;
    do {
      kind = {static_cast<arithmetic::Operation>(random.below(arithmetic::kOperations)),
              static_cast<arithmetic::Type>(random.below(arithmetic::kTypes))};
      combiner = arithmetic::Combiner::find(kind.operation, kind.type);
    } while (!combiner || combiner->depends_on_pairs());
    if (plan.reduction.kind == wire::MrpReduction::kOrdered && sums.chance(0.5)) {
      kind = {sums.chance(0.8) ? arithmetic::Operation::kSum : arithmetic::Operation::kProduct,
              sums.chance(0.5) ? arithmetic::Type::kDouble : arithmetic::Type::kFloat};
      combiner = arithmetic::Combiner::find(kind.operation, kind.type);
    }
    one.kind = kind;
    one.bytes -= one.bytes % combiner->size();
  }
}

// Two thirds of the operations with data have memory of their own, and some are long. The
// draws are of their own, too.
void draw_places(const ScenarioPlan& scenario, std::size_t unit, ReductionPlan& plan) {
  Random random(scenario.seed ^ plan.group.id.value() ^ 0x10C9);
  const bool may_be_long =
      plan.group.members.size() <= kFewMembers && !has_marks(scenario.topology);
  std::size_t long_ones = 0;
  for (ReductionOperation& one : plan.operations) {
    if (one.bytes == 0) continue;
    one.place = static_cast<mcast::ReductionUnits::Place>(random.below(3));
    if (!may_be_long || long_ones == kMostLong || !random.chance(0.2)) continue;
    ++long_ones;
    const std::uint64_t least = wire::MrpReduction::kUnitStep;
    one.bytes = static_cast<std::uint32_t>(
        random.between(least, 3 * std::uint64_t{plan.reduction.window} * unit) / least * least);
  }
}

}  // namespace

ReductionPlan make_reduction_plan(const GroupPlan& group, const ScenarioPlan& scenario) {
  Random random(scenario.seed ^ group.id.value());
  ReductionPlan plan;
  plan.group = group;
  plan.group.messages.clear();
  plan.group.loss_ends = true;
  const std::size_t members = group.members.size();
  const std::uint32_t path_mtu = scenario.transport.path_mtu;
  // The unit may be longer than the path MTU, because REGISTER has it before the path MTU is known.
  plan.reduction.unit =
      static_cast<std::uint16_t>(random.chance(0.2)   ? wire::MrpReduction::kMostUnit
                                 : random.chance(0.5) ? path_mtu
                                                      : whole_values(random.between(1u, path_mtu)));
  plan.reduction.window = static_cast<std::uint16_t>(1u << random.below(9));
  while (members * plan.reduction.window * plan.reduction.unit > kMostMemory) {
    plan.reduction.window /= 2;
  }
  const std::size_t operations = 1 + random.below(16);
  const std::uint64_t unit = std::min<std::uint32_t>(plan.reduction.unit, path_mtu);
  for (std::size_t i = 0; i < operations; ++i) {
    ReductionOperation one;
    if (random.chance(0.6)) {
      one.kind = mcast::ReductionUnits::kOr;
      const std::uint64_t most = random.chance(0.5) ? 2 * members : 4 * unit;
      one.bytes = static_cast<std::uint32_t>(random.below(most + 1));
    }
    plan.operations.push_back(one);
  }
  if (members <= kFewMembers && random.chance(0.1)) {  // more than a window
    const std::uint64_t units = 1 + random.below(3 * std::uint64_t{plan.reduction.window});
    plan.operations.back() = {mcast::ReductionUnits::kOr, static_cast<std::uint32_t>(units * unit)};
  }
  // Skip whole windows, up to shortly before a unit number or a PSN wraps. Most of these seeds go
  // on beyond that place.
  if (random.chance(0.3)) {
    const std::uint64_t wraps =
        random.chance(0.5) ? std::uint64_t{1} << 16
        : random.chance(0.5)
            ? std::uint64_t{1} << 24
            : (std::uint64_t{1} << 24) - wire::group_start_psn(group.id, group.epoch).value();
    plan.skipped = (wraps - random.below(40)) / plan.reduction.window * plan.reduction.window;
  }
  plan.most_begun = 1 + random.below(4);
  if (random.chance(0.5)) plan.longest_pause = random.between(Duration{0}, Duration{3ms});
  if (random.chance(0.2)) {
    plan.late_member = random.below(members);
    plan.late_operation = random.below(operations);
    plan.late_by = random.between(Duration{3ms}, Duration{40ms});
    if (random.chance(0.2)) plan.late_by += scenario.transport.silence();
  }
  if (has_marks(scenario.topology)) make_long(random, path_mtu, plan);
  draw_kinds(scenario, plan);
  draw_places(scenario, unit, plan);
  return plan;
}

}  // namespace cepheus::sim
