// The ports' and the fabric's name for it.
#pragma once

#include "wire/unique_fd.h"

namespace cepheus::fabric {

using wire::UniqueFd;

}  // namespace cepheus::fabric
