// Compares bytes: the first half of their SHA-256.
#pragma once

#include <cstdint>
#include <span>

#include "replica/control/messages.h"

namespace cepheus::replica {

Digest digest_of(std::span<const std::uint8_t> bytes);
// Computes the digests of the request in `digests`; its range lies in `data`.
void make_digests(Digests& digests, std::span<const std::uint8_t> data);

}  // namespace cepheus::replica
