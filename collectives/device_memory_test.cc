#include "collectives/device_memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>

#include "collectives/gpu_driver.h"

namespace cepheus::coll {
namespace {

std::function<void()> during_next_search;

// A driver to which all memory is the device's.
int know_all(void* data, int, std::uint64_t) {
  *static_cast<unsigned*>(data) = 2;  // CU_MEMORYTYPE_DEVICE
  return 0;
}

}  // namespace

PointerGetAttribute find_gpu_driver() {
  if (const auto work = std::exchange(during_next_search, nullptr)) work();
  return know_all;
}

namespace {

TEST(DeviceMemory, IsKnownToASecondThreadDuringTheSearchForTheDriver) {
  const int memory = 0;
  bool is_known_to_second = false;
  during_next_search = [&] {
    std::thread([&] { is_known_to_second = is_device_memory(&memory); }).join();
  };
  EXPECT_TRUE(is_device_memory(&memory));
  EXPECT_TRUE(is_known_to_second);
}

}  // namespace
}  // namespace cepheus::coll
