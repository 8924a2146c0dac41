#include "collectives/sim/rootless_plan.h"

#include <algorithm>
#include <iterator>
#include <random>

namespace cepheus::coll::sim {

const char* name(GroupFault fault) {
  constexpr const char* kNames[] = {"none", "failed",  "silent",     "disconnected", "deaf",
                                    "mute", "refused", "broadcasts", "death"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(GroupFault::kCount));
  return kNames[static_cast<std::size_t>(fault)];
}

RootlessPlan make_rootless_plan(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  RootlessPlan plan;
  plan.seed = seed;
  plan.ranks = 2 + static_cast<int>(pick(6));
  plan.window = 1u << pick(4);
  plan.unit_bytes = 4 + pick(13);
  plan.most_in_flight = pick(3) == 0 ? 1 : 1 + pick(2 * plan.window);
  plan.has_whole_results = pick(2) == 0;
  plan.fault = static_cast<GroupFault>(pick(static_cast<std::size_t>(GroupFault::kCount)));
  // Short jobs, in which the fault strikes at any step, and long ones.
  const std::size_t calls = pick(2) == 0 ? 3 + pick(6) : 10 + pick(40);
  plan.event = pick((pick(2) == 0 ? 40 : 250) * calls);
  plan.is_at_end = pick(10) == 0;
  if (!plan.is_healthy() && plan.fault != GroupFault::kDeath && pick(2) == 0)
    plan.more_faults = 1 + static_cast<int>(pick(3));
  plan.dies_later = plan.fault != GroupFault::kDeath && pick(12) == 0;
  plan.has_slow_rank = pick(4) == 0;
  plan.has_absences = pick(3) == 0;
  plan.has_slow_link = pick(4) == 0;
  plan.has_slow_set_up = pick(4) == 0;
  plan.retry_after = 1 + pick(pick(2) == 0 ? 3 : 20);
  plan.returns_errors = pick(2) == 0;
  plan.is_death_known = pick(2) == 0;
  plan.events_to_end = pick(4000);
  const std::size_t blocking = pick(3);
  const std::size_t broadcasts = pick(2) * 5;
  // Nearly all of N x S bytes are up to eight units, as MPI's are.
  const std::size_t most =
      RootlessPlan::kMostUnits * plan.unit_bytes / static_cast<std::size_t>(plan.ranks);
  for (std::size_t i = 0; i < calls; ++i) {
    Collective next;
    const auto ranks = static_cast<std::size_t>(plan.ranks);
    next.kind = pick(20) < broadcasts
                    ? Collective::Kind::kBroadcast
                    : static_cast<Collective::Kind>(std::min<std::size_t>(pick(6), 4));
    next.bytes = next.kind == Collective::Kind::kBarrier ? 0 : pick(pick(2) == 0 ? 4 : most + 1);
    next.root = static_cast<int>(pick(ranks));
    next.is_blocking = next.kind == Collective::Kind::kBroadcast || blocking == 0 ||
                       (blocking == 1 && pick(2) == 0);
    next.is_in_place = pick(2) == 0;
    plan.program.push_back(next);
  }
  return plan;
}

std::string to_text(const RootlessPlan& plan) {
  std::string text = std::to_string(plan.ranks) + " ranks, " + std::to_string(plan.program.size()) +
                     " calls, window " + std::to_string(plan.window) + ", units of " +
                     std::to_string(plan.unit_bytes) + " bytes, up to " +
                     std::to_string(plan.most_in_flight) + " calls in flight, fault " +
                     name(plan.fault) + " at event " + std::to_string(plan.event);
  if (plan.is_at_end) text += " or at the end";
  if (plan.has_whole_results) text += ", whole results";
  if (plan.more_faults > 0) text += ", " + std::to_string(plan.more_faults) + " more";
  if (plan.dies_later) text += ", then a death";
  if (plan.has_slow_rank) text += ", a slow rank";
  if (plan.has_absences) text += ", absences";
  if (plan.has_slow_link) text += ", a slow link";
  if (plan.has_slow_set_up) text += ", slow set-up";
  if ((plan.fault == GroupFault::kDeath || plan.dies_later) && plan.returns_errors)
    text += ", errors are returned";
  return text;
}

}  // namespace cepheus::coll::sim
