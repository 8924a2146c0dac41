// must(): conditions of check_consistent(). Checked in every build, because callers request it
// explicitly.
#pragma once

#include <stdexcept>
#include <string>

namespace cepheus::fabric {

// A bug of the engine. The simulator catches it and names the seed; elsewhere it ends the process.
class Inconsistent : public std::logic_error {
 public:
  explicit Inconsistent(const char* what)
      : std::logic_error(std::string("switch engine is inconsistent: ") + what) {}
};

inline void must(bool holds, const char* what) {
  if (!holds) throw Inconsistent(what);
}

}  // namespace cepheus::fabric
