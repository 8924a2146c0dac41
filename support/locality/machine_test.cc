#include "support/locality/machine.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "support/locality/machine_testing.h"

namespace cepheus::locality {
namespace {

// hwloc loads it and unloads it: what it then still holds would count as leaked.
[[maybe_unused]] void* const stays_loaded = dlopen("libpciaccess.so.0", RTLD_LAZY);

TEST(Machine, KnowsTheCoresOfThisProcess) {
  const auto machine = Machine::load();
  ASSERT_TRUE(machine) << machine.error().text;
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const CpuSet cores = machine->cores_of_process();
  EXPECT_EQ(hwloc_bitmap_weight(cores.get()), CPU_COUNT(&allowed));
}

TEST(Machine, BindsAThread) {
  const auto machine = Machine::load();
  ASSERT_TRUE(machine) << machine.error().text;
  const int last = hwloc_bitmap_last(machine->cores_of_process().get());
  std::thread([&] {
    const auto bound = machine->bind_thread(cpus(std::to_string(last)).get());
    ASSERT_TRUE(bound) << bound.error().text;
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    EXPECT_EQ(CPU_COUNT(&allowed), 1);
    EXPECT_TRUE(CPU_ISSET(last, &allowed));
  }).join();
}

TEST(Machine, OfAnotherKindHasAllItsCores) {
  const auto machine = Machine::synthetic("numa:2 core:4 pu:2");
  ASSERT_TRUE(machine) << machine.error().text;
  EXPECT_EQ(nodes_text(machine->topology(), machine->cores_of_process().get()), "NUMA nodes 0-1");
  EXPECT_FALSE(machine->bind_thread(cpus("0").get())) << "nobody runs there";
}

TEST(Machine, ThatHwlocDoesNotUnderstandIsRefused) {
  EXPECT_FALSE(Machine::synthetic("numa:two"));
  EXPECT_FALSE(Machine::from_xml("<topology"));
}

}  // namespace
}  // namespace cepheus::locality
