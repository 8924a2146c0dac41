// Seeds whose groups lie on fabrics with equal-cost paths instead of a tree of switches.
#pragma once

#include "fabric-sim/checked/scenario_plan.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

// Between two HELLOs of a trunk, where switches send any.
inline constexpr wire::Duration kHello = std::chrono::milliseconds(1);
// Until every switch knows of a cut: silence, and a list that may be lost on its way.
inline constexpr wire::Duration kKnown = 16 * kHello;

// Both give the plan another fabric before it has groups.

// A leaf-spine fabric or a fat-tree of at most eight hosts, whose switches send HELLOs.
void use_small_fabric(Random& random, ScenarioPlan& plan);

// One of four hosts or more: of a hundred seeds some eighty have up to 16, seventeen up to 54, three
// up to 128, and one in four hundred several hundred. Switches send HELLOs in some, and in all with
// `hellos`.
void use_fabric_of_any_size(ScenarioPlan& plan, bool hellos);

// For each group one of the same members that begins when all switches know what befell them at
// `at`.
void add_successors(Random& random, ScenarioPlan& plan, wire::Duration at);

}  // namespace cepheus::sim
