// Limit of this process's descriptors: each attached host needs some.
#pragma once

#include <cstddef>

namespace cepheus::live {

// Connection, process, and a doorbell each way.
inline constexpr std::size_t kDescriptorsPerHost = 4;

// Raises the limit as far as the hard one allows, and returns it.
std::size_t raise_descriptor_limit();

}  // namespace cepheus::live
