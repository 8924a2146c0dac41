// Seeds with groups on fabrics with equal-cost paths instead of a tree of switches.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

// Between two HELLOs of a trunk, if switches send any.
inline constexpr wire::Duration kHello = std::chrono::milliseconds(1);
// Time until every switch knows of a cut: the silence, and one lost list.
inline constexpr wire::Duration kKnown = 16 * kHello;

// Both replace the plan's fabric before it has groups.

// A leaf-spine fabric or a fat-tree of at most eight hosts, whose switches send HELLOs.
void use_small_fabric(Random& random, ScenarioPlan& plan);

// A fabric of four hosts or more: of a hundred seeds about eighty have up to 16 hosts, seventeen up
// to 54, three up to 128, and one in four hundred has several hundred. Switches send HELLOs in some
// seeds, and in all with `hellos`.
void use_fabric_of_any_size(ScenarioPlan& plan, bool hellos);

// For each group, adds one of the same members that begins when all switches know of the incident
// at `at`.
void add_successors(Random& random, ScenarioPlan& plan, wire::Duration at);

}  // namespace cepheus::sim
