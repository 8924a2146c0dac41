// Machines that tests play.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
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

// Two packages of four cores with even and odd numbers: ens1 and mlx5_0 are at the first, ens2 and
// mlx5_1 at the second, mlx5_9 is nobody knows where.
inline Machine two_nodes() {
  std::ifstream file(CEPHEUS_SOURCE_DIR "/support/locality/testing/two_nodes.xml");
  auto machine = Machine::from_xml(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!machine) throw std::runtime_error(machine.error().text);
  return std::move(*machine);
}

}  // namespace cepheus::locality
