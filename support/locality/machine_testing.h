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

inline Machine machine_from(const std::string& xml) {
  auto machine = Machine::from_xml(xml);
  if (!machine) throw std::runtime_error(machine.error().text);
  return std::move(*machine);
}

// Two packages of four cores with even and odd numbers: ens1 and mlx5_0 are at the first, ens2 and
// mlx5_1 at the second, mlx5_9 is nobody knows where.
inline Machine two_nodes() {
  std::ifstream file(CEPHEUS_SOURCE_DIR "/support/locality/testing/two_nodes.xml");
  return machine_from({std::istreambuf_iterator<char>(file), {}});
}

// Three packages of a core each, 0 to 2: the devices "far" and "near" are at 1 and 2, and the
// firmware says that 2 is nearer to 0.
inline Machine three_nodes() {
  const auto package = [](const std::string& number, const std::string& sets,
                          const std::string& device) {
    const std::string both = " os_index=\"" + number + "\" cpuset=\"" + sets +
                             "\" complete_cpuset=\"" + sets + "\" nodeset=\"" + sets +
                             "\" complete_nodeset=\"" + sets + "\" gp_index=\"";
    return "<object type=\"Package\"" + both + "1" + number + "\"><object type=\"NUMANode\"" +
           both + "2" + number + "\" local_memory=\"1000000\"/><object type=\"Core\"" + both + "3" +
           number + "\"><object type=\"PU\"" + both + "4" + number + "\"/></object>" + device +
           "</object>";
  };
  const auto device = [](const std::string& bus, const std::string& name) {
    return "<object type=\"Bridge\" gp_index=\"5" + bus +
           "\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[0" + bus + "-0" + bus +
           "]\"><object type=\"PCIDev\" gp_index=\"6" + bus + "\" pci_busid=\"0000:0" + bus +
           ":00.0\" pci_type=\"0200 [15b3:1017] [15b3:0020] 00\" pci_link_speed=\"15.75\">"
           "<object type=\"OSDev\" gp_index=\"7" +
           bus + "\" name=\"" + name + "\" osdev_type=\"3\"/></object></object>";
  };
  return machine_from(
      R"(<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd">)"
      R"(<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x7" )"
      R"(complete_cpuset="0x7" allowed_cpuset="0x7" nodeset="0x7" complete_nodeset="0x7" )"
      R"(allowed_nodeset="0x7" gp_index="1">)" +
      package("0", "0x1", "") + package("1", "0x2", device("1", "far")) +
      package("2", "0x4", device("2", "near")) +
      R"(</object><distances2 type="NUMANode" nbobjs="3" kind="5" name="NUMALatency" )"
      R"(indexing="os"><indexes length="6">0 1 2 </indexes><u64values length="27">)"
      R"(10 30 20 30 10 30 20 30 10 </u64values></distances2></topology>)");
}

}  // namespace cepheus::locality
