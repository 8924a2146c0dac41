// Whether a buffer lies in a GPU's memory, which our NIC must not be handed.
#pragma once

namespace cepheus::coll {

// Looks whether the program has CUDA's driver library loaded by now; cheap unless it has loaded
// anything since the last call.
void look_for_gpu_driver();
// Asks the driver; false without one.
bool is_device_memory(const void* address);

}  // namespace cepheus::coll
