// True if a buffer is in a GPU's memory, which our NIC must not get.
#pragma once

namespace cepheus::coll {

// Asks CUDA's driver, if the program has loaded it by now; false without one.
bool is_device_memory(const void* address);

}  // namespace cepheus::coll
