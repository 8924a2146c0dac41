#include "support/locality/thread_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/locality/machine_testing.h"

namespace cepheus::locality {
namespace {

using testing::HasSubstr;

bool all_are_free(unsigned) { return true; }

std::string list(const CpuSet& set) {
  if (set == nullptr) return "none";
  char text[64];
  hwloc_bitmap_list_snprintf(text, sizeof text, set.get());
  return text;
}

ThreadPlacement place(const Machine& machine, const std::string& cores,
                      std::vector<std::string> interfaces = {}, const Claim& claim = all_are_free,
                      unsigned threads = 2) {
  return place_threads(machine.topology(), cpus(cores).get(), threads, interfaces, claim);
}

Machine machine(const char* description) {
  auto made = Machine::synthetic(description);
  EXPECT_TRUE(made) << made.error().text;
  return std::move(*made);
}

TEST(ThreadPlacement, GivesTheFirstThreadACoreAndTheOthersTheNodesRest) {
  const auto placed = place(machine("numa:2 core:4 pu:2"), "0-15");
  EXPECT_EQ(list(placed.first), "6-7") << "both hardware threads of the last core";
  EXPECT_EQ(list(placed.others), "0-5");
  EXPECT_EQ(placed.why, "packets on cpu 6 at NUMA node 0; all else on the node's other cores");
}

TEST(ThreadPlacement, IsWhereTheProcessMayRun) {
  const Machine two = machine("numa:2 core:4 pu:2");
  const auto placed = place(two, "0-1,8-15");
  EXPECT_EQ(list(placed.first), "14-15");
  EXPECT_EQ(list(placed.others), "8-13");
  EXPECT_EQ(list(place(two, "0,2,4").first), "4") << "one hardware thread of each core";
}

TEST(ThreadPlacement, IsWhereTheInterfacesAre) {
  const auto placed = place(two_nodes(), "0-7", {"ens2.101", "ens2.102"});
  EXPECT_EQ(list(placed.first), "7");
  EXPECT_EQ(list(placed.others), "1,3,5");
  EXPECT_THAT(placed.why, HasSubstr("NUMA node 1, where its interfaces are"));
  EXPECT_EQ(list(place(two_nodes(), "0-7", {"ens1", "ens2"}).first), "6")
      << "interfaces at two nodes are no reason for either";
  EXPECT_EQ(list(place(two_nodes(), "0-7", {"veth0"}).first), "6");
  EXPECT_EQ(list(place(two_nodes(), "0-7", {"0000:81:00.0"}).first), "7") << "DPDK's name of one";
}

TEST(ThreadPlacement, IsNoneWithoutMoreCoresThanThreads) {
  const auto two_cores = place(machine("numa:1 core:2 pu:2"), "0-3");
  EXPECT_FALSE(two_cores.is_placed());
  EXPECT_EQ(two_cores.why,
            "left to the kernel: 2 threads need more than the 2 cores at NUMA node 0");
  EXPECT_TRUE(place(machine("numa:1 core:3 pu:1"), "0-2").is_placed());
  EXPECT_FALSE(place(machine("numa:2 core:4 pu:2"), "0-3,8-11").is_placed())
      << "four cores in all, at two nodes";
}

TEST(ThreadPlacement, LeavesCoresToWhoHasThem) {
  std::set<unsigned> taken = {6, 4};
  const auto claim = [&](unsigned cpu) { return taken.insert(cpu).second; };
  const Machine one = machine("numa:1 core:4 pu:2");
  EXPECT_EQ(list(place(one, "0-7", {}, claim).first), "2-3");
  EXPECT_EQ(list(place(one, "0-7", {}, claim).first), "0-1");
  const auto last = place(one, "0-7", {}, claim);
  EXPECT_FALSE(last.is_placed());
  EXPECT_THAT(last.why, HasSubstr("other switches have all cores"));
}

TEST(CoreClaims, AreOneHoldersUntilItEnds) {
  constexpr unsigned kNobodys = 1'000'000;  // beyond all machines
  CoreClaims second;
  {
    CoreClaims first;
    EXPECT_TRUE(first.take(kNobodys));
    EXPECT_FALSE(second.take(kNobodys));
    EXPECT_TRUE(second.take(kNobodys + 1));
  }
  EXPECT_TRUE(second.take(kNobodys));
}

}  // namespace
}  // namespace cepheus::locality
