// The choice among several devices, on a machine that a file describes to hwloc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "libmcast/device.h"
#include "libmcast/fake_device.h"

namespace cepheus::mcast {
namespace {

constexpr const char* kNoChoice =
    "this process can't choose between cpus 0 and 1, which stand for two nodes: run the test on "
    "both, without ThreadSanitizer";

class DevicesOfTwoNodes : public testing::Test {
 protected:
  DevicesOfTwoNodes() {
    setenv("HWLOC_XMLFILE", CEPHEUS_SOURCE_DIR "/support/locality/testing/two_nodes.xml", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);  // the system says where the process may run
    sched_getaffinity(0, sizeof before_, &before_);
    device_.names = {"mlx5_0", "mlx5_1"};
  }
  ~DevicesOfTwoNodes() override {
    sched_setaffinity(0, sizeof before_, &before_);
    unsetenv("HWLOC_XMLFILE");
    unsetenv("HWLOC_THISSYSTEM");
    fake::Device::fresh();
  }
  // On that machine even cores are at node 0, odd ones at node 1. False: this process may not use
  // such a core.
  static bool run_on(int cpu) {
#ifdef __SANITIZE_THREAD__
    return false;  // its own thread runs anywhere
#endif
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  }
  static std::string opened(const DeviceOptions& options = {}) {
    const auto device = Device::open(options);
    return device ? (*device)->name() + ": " + (*device)->why() : device.error().text;
  }

  fake::Device& device_ = fake::Device::fresh();

 private:
  cpu_set_t before_{};
};

TEST_F(DevicesOfTwoNodes, TheNearestIsOpened) {
  if (!run_on(1)) GTEST_SKIP() << kNoChoice;
  EXPECT_EQ(opened(),
            "mlx5_1: nearest: at NUMA node 1, process on NUMA node 1; mlx5_0 at NUMA node 0");
  if (!run_on(0)) GTEST_SKIP() << kNoChoice;
  EXPECT_EQ(opened(),
            "mlx5_0: nearest: at NUMA node 0, process on NUMA node 0; mlx5_1 at NUMA node 1");
}

TEST_F(DevicesOfTwoNodes, AFartherOneServesWhereTheNearestCanNot) {
  if (!run_on(0)) GTEST_SKIP() << kNoChoice;
  device_.without_port = "mlx5_0";
  EXPECT_EQ(opened(),
            "mlx5_1: nearest that serves: at NUMA node 1, process on NUMA node 0; mlx5_0 at NUMA "
            "node 0");
}

TEST_F(DevicesOfTwoNodes, WhoNamesADeviceGetsIt) {
  if (!run_on(0)) GTEST_SKIP() << kNoChoice;
  EXPECT_EQ(opened({.name = "mlx5_1"}), "mlx5_1: named by the user");
  EXPECT_THAT(opened({.name = "mlx5_7"}), testing::HasSubstr("no RDMA device called mlx5_7"));
}

TEST_F(DevicesOfTwoNodes, AnEmulatedOneGoesFirst) {
  if (!run_on(0)) GTEST_SKIP() << kNoChoice;
  device_.names = {"cepheus0", "mlx5_1", "mlx5_0"};
  EXPECT_EQ(opened(), "cepheus0: in the order of the list; it has no place near any cores");
  device_.without_port = "cepheus0";
  EXPECT_THAT(opened(), testing::StartsWith("mlx5_0: nearest"));
}

TEST_F(DevicesOfTwoNodes, OneAloneNeedsNoReason) {
  device_.names = {"mlx5_1"};
  EXPECT_EQ(opened(), "mlx5_1: the only one");
}

}  // namespace
}  // namespace cepheus::mcast
