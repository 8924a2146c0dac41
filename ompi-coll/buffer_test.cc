#include "ompi-coll/buffer.h"

#include <gtest/gtest.h>

#include <span>

#include "collectives/gpu_driver.h"

namespace cepheus {
namespace {

std::span<const std::byte> on_device;

int know_device(void* data, int, std::uint64_t pointer) {
  const auto first = reinterpret_cast<std::uintptr_t>(on_device.data());
  if (pointer < first || pointer >= first + on_device.size()) return 1;
  *static_cast<unsigned*>(data) = 2;  // CU_MEMORYTYPE_DEVICE
  return 0;
}

}  // namespace

coll::PointerGetAttribute coll::find_gpu_driver() { return know_device; }

namespace ompi {
namespace {

TEST(Buffer, OfBytesOnTheHostIsContiguous) {
  std::array<std::byte, 64> memory{};
  const Buffer buffer({memory.data(), memory.size(), &ompi_mpi_byte.dt});
  EXPECT_TRUE(buffer.is_contiguous());
  EXPECT_EQ(buffer.bytes(), memory.size());
}

// As a type of absolute addresses.
TEST(Buffer, FromMpiBottomInMemoryOfADeviceIsNeverHandedToTheNic) {
  std::array<std::byte, 64> memory{};
  ompi_datatype_t absolute = ompi_mpi_byte.dt;
  absolute.super.true_lb = reinterpret_cast<std::intptr_t>(memory.data());
  absolute.super.true_ub += absolute.super.true_lb;
  EXPECT_TRUE(Buffer({MPI_BOTTOM, 1, &absolute}).is_contiguous());
  on_device = memory;
  EXPECT_FALSE(Buffer({MPI_BOTTOM, 1, &absolute}).is_contiguous());
  on_device = {};
}

#if OMPI_MAJOR_VERSION >= 5
int all_is_the_devices(const void*, int*, std::uint64_t*) { return 1; }

TEST(Buffer, InMemoryOfAnAcceleratorThatOpenMpiKnowsIsNeverHandedToTheNic) {
  std::array<std::byte, 64> memory{};
  opal_accelerator.check_addr = all_is_the_devices;
  const Buffer buffer({memory.data(), memory.size(), &ompi_mpi_byte.dt});
  opal_accelerator.check_addr = nullptr;
  EXPECT_FALSE(buffer.is_contiguous());
}
#endif

}  // namespace
}  // namespace ompi
}  // namespace cepheus
