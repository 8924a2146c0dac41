// Synthetic machines for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "support/locality/machine.h"

namespace cepheus::locality {

// "0,2-5"
inline CpuSet cpus(const std::string& list) {
  CpuSet set(hwloc_bitmap_alloc());
  EXPECT_EQ(hwloc_bitmap_list_sscanf(set.get(), list.c_str()), 0) << list;
  return set;
}

// By hwloc's variables HWLOC_SYNTHETIC or HWLOC_XMLFILE.
inline Machine machine_of(const char* variable, const std::string& value) {
  setenv(variable, value.c_str(), 1);
  auto machine = Machine::load();
  unsetenv(variable);
  if (!machine) throw std::runtime_error(machine.error().text);
  return std::move(*machine);
}

// Two packages of four cores with even and odd numbers: ens1 and mlx5_0 are at the first, ens2 and
// mlx5_1 at the second; mlx5_9 has no place.
inline Machine two_nodes() {
  return machine_of("HWLOC_XMLFILE", CEPHEUS_SOURCE_DIR "/support/locality/testing/two_nodes.xml");
}

}  // namespace cepheus::locality
