#include "ompi-coll/buffer.h"

#include <gtest/gtest.h>

namespace cepheus::ompi {
namespace {

TEST(Buffer, OfBytesOnTheHostIsContiguous) {
  std::array<std::byte, 64> memory{};
  const Buffer buffer(memory.data(), memory.size(), &ompi_mpi_byte.dt);
  EXPECT_TRUE(buffer.is_contiguous());
  EXPECT_EQ(buffer.bytes(), memory.size());
}

#if OMPI_MAJOR_VERSION >= 5
int all_is_the_devices(const void*, int*, std::uint64_t*) { return 1; }

TEST(Buffer, InMemoryOfAnAcceleratorThatOpenMpiKnowsIsNeverHandedToTheNic) {
  std::array<std::byte, 64> memory{};
  opal_accelerator.check_addr = all_is_the_devices;
  const Buffer buffer(memory.data(), memory.size(), &ompi_mpi_byte.dt);
  opal_accelerator.check_addr = nullptr;
  EXPECT_FALSE(buffer.is_contiguous());
}
#endif

}  // namespace
}  // namespace cepheus::ompi
