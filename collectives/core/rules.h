// The rules that keep broadcasts right when the fabric fails. A test may switch one off: some seed
// of collectives/sim must fail then. In builds without tests, which define CEPHEUS_RULES_ARE_FIXED,
// they are constants.
#pragma once

namespace cepheus::coll {

#ifdef CEPHEUS_RULES_ARE_FIXED
#define CEPHEUS_RULE(name, help) static constexpr bool name = true;
#else
#define CEPHEUS_RULE(name, help) bool name = true;
#endif
struct Rules {
#include "collectives/core/rules.def"
};
// This process's.
inline Rules rules;

}  // namespace cepheus::coll
