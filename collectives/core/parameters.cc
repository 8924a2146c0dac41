#include "collectives/core/parameters.h"

namespace cepheus::coll {

Parameters& parameters() {
  static Parameters p;
  return p;
}

unsigned Parameters::fingerprint() const {
  unsigned hash = 2166136261u;
  for (const int value :
       {mode, min_members, eager_limit, eager_message, mrp_port, ranks_per_host, set_up_after,
        static_cast<int>(set_up_bytes), ordered_starts, safeguard_samples}) {
    hash = (hash ^ static_cast<unsigned>(value)) * 16777619u;
  }
  return hash;
}

}  // namespace cepheus::coll
