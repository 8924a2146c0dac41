// The choice of device and GID by the kernel's routes, in a network namespace of the process's own.
// Devices are fakes; interfaces, addresses and routes are real.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/mcast.h>
#include <net/if.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "libmcast/device.h"
#include "libmcast/fake_group.h"
#include "wire/unique_fd.h"

namespace cepheus::mcast {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr wire::Ipv4 kNear(10, 1, 0, 1), kFar(10, 2, 0, 1), kAlias(10, 2, 0, 7), kVlan(10, 3, 0, 1);

bool ip(const std::string& arguments) {
  return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0;
}

// mlx5_0 is on interface "near", mlx5_1 on "far"; "vlan" stands for one of far's VLANs.
class Routes : public FakeGroup {
 protected:
  static void SetUpTestSuite() {
    machine_.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (unshare(CLONE_NEWNET) != 0) {
      why_not = std::string("no network namespace: ") + std::strerror(errno) +
                "; run the tests as root to have one";
      return;
    }
    const bool made = ip("link add name near type veth peer name near-peer") &&
                      ip("link add name far type veth peer name far-peer") &&
                      ip("link add name vlan link far type macvlan");
    if (!made) {
      why_not = "no veth pair or macvlan: apt-get install iproute2, modprobe -a veth macvlan";
    }
    for (const char* end : {"near", "near-peer", "far", "far-peer", "vlan"}) {
      ip(std::string("link set dev ") + end + " up");
    }
    ip("address add 10.1.0.1/24 dev near");
    ip("address add 10.2.0.1/24 dev far");
    ip("address add 10.2.0.7/24 dev far");
    ip("address add 10.3.0.1/24 dev vlan");
  }

  static void TearDownTestSuite() {
    if (why_not.empty()) setns(machine_.get(), CLONE_NEWNET);  // other tests need it
  }

  void SetUp() override {
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    device_.names = {"mlx5_0", "mlx5_1"};
    device_.gids = {{"mlx5_0", 1, kNear, if_nametoindex("near")},
                    {"mlx5_1", 1, kFar, if_nametoindex("far")},
                    {"mlx5_1", 1, kAlias, if_nametoindex("far")},
                    {"mlx5_1", 1, kVlan, if_nametoindex("vlan")}};
  }
  void TearDown() override {
    if (!why_not.empty()) return;
    ip("route flush 198.18.0.0/15");
  }
  static std::string opened(const DeviceOptions& options = {}) {
    const auto device = Device::open(options);
    return device ? (*device)->name() + " " + (*device)->ipv4().to_string() : device.error().text;
  }

  static inline std::string why_not;
  static inline wire::UniqueFd machine_;  // its network namespace
};

TEST_F(Routes, LeadToTheFartherDevice) {
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.2.0.9"));
  EXPECT_EQ(opened(), "mlx5_1 10.2.0.1");
  EXPECT_EQ((*Device::open({}))->why(), "by the route to groups");
  ASSERT_TRUE(ip("route replace 198.18.0.0/15 via 10.1.0.9"));
  EXPECT_EQ(opened(), "mlx5_0 10.1.0.1");
}

TEST_F(Routes, LeadToTheFartherPortOfADevice) {
  for (auto& gid : device_.gids) {
    if (gid.device == "mlx5_1") gid.port = 2;
    gid.device = "mlx5_0";
  }
  device_.names = {"mlx5_0"};
  device_.ports = 2;
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.2.0.9"));
  EXPECT_EQ(opened(), "mlx5_0 10.2.0.1");
  EXPECT_EQ((*Device::open({}))->port(), 2);
}

TEST_F(Routes, LeadToAVlansGidOrToAnAliass) {
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.3.0.9"));
  EXPECT_EQ(opened(), "mlx5_1 10.3.0.1");
  ASSERT_TRUE(ip("route replace 198.18.0.0/15 via 10.2.0.9 src 10.2.0.7"));
  EXPECT_EQ(opened(), "mlx5_1 10.2.0.7");
}

// Machines with several NICs often give each a table of its own: each then serves.
TEST_F(Routes, MayDependOnTheSource) {
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.1.0.9"));
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.2.0.9 dev far table 77"));
  ASSERT_TRUE(ip("rule add from 10.2.0.7 lookup 77"));
  EXPECT_EQ(opened({.name = "mlx5_1"}), "mlx5_1 10.2.0.7");
  EXPECT_EQ(opened(), "mlx5_0 10.1.0.1");
  ip("rule del from 10.2.0.7");
}

TEST_F(Routes, ByNoDeviceAreNamed) {
  EXPECT_THAT(opened(), AllOf(HasSubstr("mlx5_0: packets to groups do not leave by its interface "
                                        "(10.1.0.1 of near: Network is unreachable)"),
                              HasSubstr("ip route add 198.18.0.0/15 via SWITCH dev near")));
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.2.0.9"));
  EXPECT_THAT(opened({.name = "mlx5_0"}), HasSubstr("(10.1.0.1 of near: by far)"));
  EXPECT_EQ(opened({.name = "mlx5_0", .gid_index = 0}), "mlx5_0 10.1.0.1") << "the user's choice";
}

TEST_F(Routes, OfAnotherBlockCountIfGroupsHaveIt) {
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.1.0.9"));
  ASSERT_TRUE(ip("route add 10.77.0.0/16 via 10.2.0.9"));
  EXPECT_EQ(opened({.groups = *wire::Ipv4Prefix::parse("10.77.0.0/16")}), "mlx5_1 10.2.0.1");
  ip("route del 10.77.0.0/16");
}

TEST_F(Routes, AreNamedIfTheNextHopDoesNotAnswer) {
  ASSERT_TRUE(ip("route add 198.18.0.0/15 via 10.2.0.9"));
  open({});
  make(MCAST_LANE_BULK);
  ASSERT_TRUE(ip("neigh replace 10.2.0.9 lladdr 02:00:00:00:00:09 nud failed dev far"));
  device_.refuse_modify = ETIMEDOUT;
  join();
  EXPECT_THAT(attr().reason,
              HasSubstr("no answer for the group's address; the route to 198.18.3.4 leaves by far "
                        "to 10.2.0.9, whose neighbour entry is FAILED"));
}

}  // namespace
}  // namespace cepheus::mcast
