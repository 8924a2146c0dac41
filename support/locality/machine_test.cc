#include "support/locality/machine.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "support/locality/machine_testing.h"

namespace cepheus::locality {
namespace {

// hwloc loads and unloads it: memory that it still holds would count as leaked.
[[maybe_unused]] void* const stays_loaded = dlopen("libpciaccess.so.0", RTLD_LAZY);

TEST(Machine, KnowsTheCoresOfThisProcess) {
  const auto machine = Machine::load();
  ASSERT_TRUE(machine) << machine.error().text;
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const CpuSet cores = machine->cores_of_process();
  EXPECT_EQ(hwloc_bitmap_weight(cores.get()), CPU_COUNT(&allowed));
}

TEST(Machine, OfAnotherKindHasAllItsCores) {
  const Machine machine = machine_of("HWLOC_SYNTHETIC", "numa:2 core:4 pu:2");
  EXPECT_EQ(nodes_text(machine.topology(), machine.cores_of_process().get()), "NUMA nodes 0-1");
}

}  // namespace
}  // namespace cepheus::locality
