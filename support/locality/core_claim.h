// Cores that switches of one machine have for themselves, so that no two poll on the same one.
//
// A claim is a name in the abstract namespace of Unix sockets (unix(7)): it belongs to one process,
// and the kernel drops it when that ends, however it ends. Processes in other network namespaces are
// not seen.
#pragma once

#include <vector>

#include "wire/unique_fd.h"

namespace cepheus::locality {

class CoreClaims {
 public:
  // False if another process, or this one, has that core already.
  bool take(unsigned cpu);

 private:
  std::vector<wire::UniqueFd> held_;
};

}  // namespace cepheus::locality
