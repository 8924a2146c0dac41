// AMD's and Intel's GPU runtimes: in a process that has one, a buffer may be in memory that only
// the runtime knows, and Cepheus doesn't ask it.
#pragma once

#include <string>

namespace cepheus::coll {

// The file name of a library for HIP, SYCL or OpenMP's offloading that the program has loaded by
// now; else "". HSA and Level Zero don't count: hwloc and UCX load them on machines without a GPU.
std::string loaded_gpu_runtime();
// True if there is one. Cheap, unless libraries have been loaded since the last call.
bool has_gpu_runtime();

}  // namespace cepheus::coll
