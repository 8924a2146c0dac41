// The rules that keep collectives right when the fabric fails: of broadcasts, and of collectives
// without a root. A test may switch one off: some seed of collectives/sim must fail then. In builds
// without tests, which define CEPHEUS_RULES_ARE_FIXED, they are constants.
#pragma once

namespace cepheus::coll {

#ifdef CEPHEUS_RULES_ARE_FIXED
#define CEPHEUS_RULE_MEMBER(name) static constexpr bool name = true;
#else
#define CEPHEUS_RULE_MEMBER(name) bool name = true;
#endif
struct Rules {
#define CEPHEUS_RULE(name, help) CEPHEUS_RULE_MEMBER(name)
#include "collectives/core/rules.def"
#define CEPHEUS_RULE(name, help) CEPHEUS_RULE_MEMBER(name)
#include "collectives/core/rootless_rules.def"
};
#undef CEPHEUS_RULE_MEMBER
// This process's.
inline Rules rules;

}  // namespace cepheus::coll
