// Whether bytes are the same: the first half of their SHA-256.
#pragma once

#include <cstdint>
#include <span>

#include "replica/control/messages.h"

namespace cepheus::replica {

Digest digest_of(std::span<const std::uint8_t> bytes);

}  // namespace cepheus::replica
