#include "ompi-coll/payload.h"

#include <gtest/gtest.h>

#include <array>

namespace cepheus::coll {
namespace {

TEST(Payload, OfBytesOnTheHostIsContiguous) {
  std::array<std::byte, 64> memory{};
  const Payload payload(memory.data(), memory.size(), &ompi_mpi_byte.dt);
  EXPECT_TRUE(payload.contiguous());
  EXPECT_EQ(payload.bytes(), memory.size());
}

#if OMPI_MAJOR_VERSION >= 5
int all_is_the_devices(const void*, int*, std::uint64_t*) { return 1; }

TEST(Payload, InMemoryOfAnAcceleratorThatOpenMpiKnowsIsNeverHandedToTheNic) {
  std::array<std::byte, 64> memory{};
  opal_accelerator.check_addr = all_is_the_devices;
  const Payload payload(memory.data(), memory.size(), &ompi_mpi_byte.dt);
  opal_accelerator.check_addr = nullptr;
  EXPECT_FALSE(payload.contiguous());
}
#endif

}  // namespace
}  // namespace cepheus::coll
