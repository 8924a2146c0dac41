// Interfaces that can't serve a box, or not well: machines as their sysfs describes them, and a
// veth pair's offloads.
#include "switch-emulator/ports/interface_check.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>

#include "switch-emulator/ports/offloads.h"
#include "switch-emulator/ports/test_veth.h"
#include "wire/ethernet.h"

namespace cepheus::fabric {
namespace {

using std::filesystem::path;
using testing::ElementsAre;
using testing::HasSubstr;
using enum InterfaceCheck::Verdict;

constexpr std::uint32_t kPacket = 1024 + 128;

// The interface is "lo", which every kernel has; its sysfs is the test's own.
class InterfaceCheckTest : public testing::Test {
 protected:
  InterfaceCheckTest() {
    std::string name = testing::TempDir() + "sysXXXXXX";
    machine.sys = mkdtemp(name.data());
    machine.cores = 2;
  }
  ~InterfaceCheckTest() override { std::filesystem::remove_all(machine.sys); }

  void write(const path& file, const std::string& text) {
    std::filesystem::create_directories((machine.sys / file).parent_path());
    std::ofstream(machine.sys / file) << text << "\n";
  }
  void link(const path& target, const path& name) {
    std::filesystem::create_directories((machine.sys / name).parent_path());
    std::filesystem::create_directories(machine.sys / target);
    std::filesystem::create_directory_symlink(machine.sys / target, machine.sys / name);
  }
  void add_roce(const std::string& device, const std::string& interface) {
    const path attributes = path("class/infiniband") / device / "ports/1/gid_attrs";
    write(attributes / "types/0", "IB/RoCE v1");
    write(attributes / "types/1", "RoCE v2");
    write(attributes / "ndevs/1", interface);
  }
  void make_hardware(const std::string& device, const std::string& driver) {
    link("devices/0000:03:00.0", path("class/infiniband") / device / "device");
    link(path("drivers") / driver, "devices/0000:03:00.0/driver");
  }
  InterfaceCheck check(const std::string& name) {
    for (const InterfaceCheck& each : check_interface("lo", kPacket, machine)) {
      if (each.name == name) return each;
    }
    ADD_FAILURE() << "no check " << name;
    return {};
  }

  Machine machine;
};

TEST_F(InterfaceCheckTest, HasANameForEachFinding) {
  std::vector<std::string> names;
  for (const InterfaceCheck& each : check_interface("lo", kPacket, machine)) {
    names.push_back(each.name);
    EXPECT_EQ(each.verdict, kGood) << each.to_text("lo");
  }
  EXPECT_THAT(names, ElementsAre("roce", "mtu", "merging", "queues", "dropping"));
  EXPECT_TRUE(check_interface("none", kPacket, machine).empty());
}

TEST_F(InterfaceCheckTest, RefusesAnInterfaceWhoseDataGoesToRoceHardware) {
  add_roce("mlx5_0", "lo");
  make_hardware("mlx5_0", "mlx5_core");
  const InterfaceCheck found = check("roce");
  EXPECT_EQ(found.verdict, kUnusable);
  EXPECT_THAT(found.seen, HasSubstr("RoCE device mlx5_0 (driver mlx5_core)"));
  EXPECT_EQ(found.todo,
            "devlink dev param set pci/0000:03:00.0 name enable_roce value false cmode driverinit "
            "&& devlink dev reload pci/0000:03:00.0");
}

TEST_F(InterfaceCheckTest, RefusesAVlanAboveRoceHardware) {
  add_roce("rocep3s0", "ens1");
  make_hardware("rocep3s0", "ice");
  link("class/net/ens1", "class/net/lo/lower_ens1");
  EXPECT_THAT(check("roce").todo, HasSubstr("name enable_roce value false cmode runtime"));
}

TEST_F(InterfaceCheckTest, AcceptsSoftRoceAndHardwareOnOtherInterfaces) {
  add_roce("rxe0", "lo");
  add_roce("mlx5_1", "ens2");
  make_hardware("mlx5_1", "mlx5_core");
  EXPECT_EQ(check("roce").verdict, kGood);
}

// `devlink` has switched RoCE off: the device stays, without GIDs.
TEST_F(InterfaceCheckTest, AcceptsHardwareWithoutGids) {
  make_hardware("mlx5_0", "mlx5_core");
  write("devices/0000:03:00.0/net/lo/mtu", "1500");
  EXPECT_EQ(check("roce").verdict, kGood);
}

TEST_F(InterfaceCheckTest, RefusesAnMtuThatIsTooSmall) {
  const InterfaceCheck found = check_mtu("ens1", 1137, kPacket);
  EXPECT_EQ(found.verdict, kUnusable);
  EXPECT_THAT(found.to_text("ens1"), HasSubstr("ip link set ens1 mtu 1138"));
}

TEST_F(InterfaceCheckTest, NamesTheSmallerPacketsOfAnMtuThatRegistrationFitsInto) {
  const InterfaceCheck found = check_mtu("ens1", 1500, 4096 + 128);
  EXPECT_EQ(found.verdict, kDoubtful);
  EXPECT_THAT(found.to_text("ens1"), HasSubstr("groups over it have packets of 1024 bytes; "));
  EXPECT_THAT(found.to_text("ens1"), HasSubstr("ip link set ens1 mtu 4210"));
  EXPECT_EQ(check_mtu("ens1", 1499, 4096 + 128).verdict, kUnusable);
}

TEST(InterfaceCheck, ReadsTheLargestFrame) {
  std::uint32_t mtu = 0;
  std::ifstream("/sys/class/net/lo/mtu") >> mtu;
  EXPECT_EQ(frame_at("lo", 1 << 20), mtu + wire::Ethernet::kSize);
  EXPECT_EQ(frame_at("lo", 1138), 1138u) << "no larger than the fabric's";
}

TEST_F(InterfaceCheckTest, NamesQueuesThatFollowTheCore) {
  write("class/net/lo/queues/rx-0/rps_cpus", "3");
  write("class/net/lo/queues/tx-0/xps_cpus", "00000000,00000001");
  EXPECT_EQ(check("queues").verdict, kGood);
  write("class/net/lo/queues/tx-1/xps_cpus", "00000000,00000002");
  const InterfaceCheck found = check("queues");
  EXPECT_EQ(found.verdict, kDoubtful);
  EXPECT_THAT(found.todo, HasSubstr("/sys/class/net/lo/queues/tx-*/xps_cpus"));
  machine.cores = 1;  // a thread that stays
  EXPECT_EQ(check("queues").verdict, kGood);
}

TEST(InterfaceCheck, SwitchesOffWhatJoinsUdpPackets) {
  const auto network = TestVeth::make(kPacket);
  if (!network) GTEST_SKIP() << network.error().text;
  const auto check = [] { return check_interface("port", kPacket)[2]; };
  EXPECT_EQ(check().seen, "no offload joins UDP packets");
  ASSERT_TRUE(Offloads("port").set("rx-gro", true));
  ASSERT_TRUE(Offloads("port").set("rx-udp-gro-forwarding", true));
  Machine only_looks;
  only_looks.may_set = false;
  EXPECT_EQ(check_interface("port", kPacket, only_looks)[2].verdict, kDoubtful);
  const InterfaceCheck found = check();
  EXPECT_EQ(found.verdict, kGood);
  EXPECT_EQ(found.seen, "switched off: rx-udp-gro-forwarding");
  EXPECT_EQ(check().seen, "no offload joins UDP packets");
}

TEST(InterfaceCheck, NamesAQueueDisciplineThatLimitsDelay) {
  const InterfaceCheck found = check_discipline("ens1", "fq_codel");
  EXPECT_EQ(found.verdict, kDoubtful);
  EXPECT_EQ(found.todo, "tc qdisc replace dev ens1 root pfifo");
  EXPECT_EQ(check_discipline("ens1", "pfifo_fast").verdict, kGood);
}

TEST(InterfaceCheck, ReadsTheQueueDiscipline) {
  const auto network = TestVeth::make(kPacket);
  if (!network) GTEST_SKIP() << network.error().text;
  EXPECT_EQ(check_interface("port", kPacket)[4].seen, "queue discipline noqueue");
  if (!TestVeth::stop_link()) {
    GTEST_SKIP() << "no token bucket: apt-get install iproute2, modprobe sch_tbf";
  }
  EXPECT_EQ(check_interface("port", kPacket)[4].seen, "queue discipline tbf");
}

}  // namespace
}  // namespace cepheus::fabric
