// CUDA's driver library, if the program has loaded it.
#pragma once

#include <cstdint>

namespace cepheus::coll {

// CUDA driver API, "Unified Addressing": CUresult cuPointerGetAttribute(void*, CUpointer_attribute,
// CUdeviceptr).
using PointerGetAttribute = int (*)(void* data, int attribute, std::uint64_t pointer);

// Null: the library is not loaded. Any thread may call it.
PointerGetAttribute find_gpu_driver();

}  // namespace cepheus::coll
