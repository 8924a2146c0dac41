// For builds without UCX.
#include "collectives/group/uct_domain.h"

namespace cepheus::coll {

std::unique_ptr<UctDomain> UctDomain::open(const char*, std::string& why) {
  why = "this build has no rc_mcast (CEPHEUS_UCX=OFF)";
  return nullptr;
}

}  // namespace cepheus::coll
