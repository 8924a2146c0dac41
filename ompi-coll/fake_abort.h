// The end of a job, which a test catches.
#pragma once

#include <string>

namespace cepheus::coll::fake {

// What abort_job() throws.
struct Aborted {
  int rank;
  std::string reason;
};

}  // namespace cepheus::coll::fake
