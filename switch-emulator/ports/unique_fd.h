// UniqueFd under the namespaces of ports and fabric.
#pragma once

#include "wire/unique_fd.h"

namespace cepheus::fabric {

using wire::UniqueFd;

}  // namespace cepheus::fabric
