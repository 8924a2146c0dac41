// must(): what check_consistent() demands. Checked in every build, because it is asked for by name.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace cepheus::fabric {

inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "switch engine is inconsistent: %s\n", what);
  std::abort();
}

}  // namespace cepheus::fabric
