#include "switch-emulator/live/control/interfaces.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "switch-emulator/live/datapath/test_datapath.h"
#include "switch-emulator/live/status/test_readings.h"
#include "switch-emulator/ports/test_veth.h"
#include "wire/test_bytes.h"

namespace cepheus::live {
namespace {

using fabric::TestVeth;
using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

constexpr wire::Mac kHostMac{{2, 0, 0, 0, 0, 1}};

// One host behind interface "port".
class InterfacesTest : public DatapathTest {
 protected:
  void SetUp() override {
    auto made = TestVeth::make(2048);
    if (!made) GTEST_SKIP() << made.error().text;
    network = std::move(*made);
  }
  void open(const net::Topology& topology) {
    build(topology);
    interfaces = std::make_unique<Interfaces>(
        *datapath, poller, [this](const std::string& text) { warnings.push_back(text); }, machine);
    const auto opened = interfaces->open(now);
    ASSERT_TRUE(opened) << opened.error().text;
  }
  static net::Topology one_host(std::uint32_t mtu = 1024) {
    net::Topology topology = net::Topology::star(1);
    topology.mtu = mtu;
    return topology;
  }
  void open_host(std::uint32_t mtu = 1024) {
    net::Topology topology = one_host(mtu);
    topology.hosts[0].interface = "port";
    open(topology);
  }
  void open_one_armed(std::uint32_t mtu = 1024) {
    configure();
    net::Topology topology = one_host(mtu);
    topology.one_armed = "port";
    open(topology);
  }
  // The largest packet that the first host's port takes, as its switch announces it.
  std::uint16_t path_mtu() const { return datapath->port_config(0).path_mtu(); }
  // Settings that the kernel's interface needs again as well.
  static void configure() {
    TestVeth::ip("address add 10.0.0.254/24 dev port");
    TestVeth::ip("neigh replace 10.0.0.1 lladdr " + kHostMac.to_string() +
                 " nud permanent dev port");
  }
  void look_a_second_later() {
    now += std::chrono::seconds(1);
    EXPECT_LE(interfaces->deadline(), now);
    interfaces->look(now);
  }
  bool is_attached() const {
    return datapath->reporting().status([](const auto& slice) { slice(); })[0].ports[0].attached;
  }
  // A datagram of the host reaches its switch.
  bool datagram_arrives() {
    wire::UdpDatagram datagram;
    datagram.ethernet.source = kHostMac;
    if (datapath->one_armed() != nullptr) {
      datagram.ethernet.destination = datapath->one_armed()->next_hops().own_mac();
    }
    datagram.ip.source = address(0);
    datagram.ip.destination = wire::Ipv4(198, 18, 0, 1);
    datagram.udp.source_port = datagram.udp.destination_port = 9;
    wire::Frame frame;
    datagram.emit(frame, {});
    const Bytes bytes = wire::bytes_of(frame);
    const std::uint64_t before = received();
    for (int tries = 0; received() == before && tries < 200; ++tries) {
      network->send(bytes);
      poller.wait(std::chrono::milliseconds(100));
      while (datapath->poll(now)) now += std::chrono::microseconds(50);
    }
    return received() > before;
  }
  std::uint64_t received() const {
    const auto status = datapath->reporting().status([](const auto& slice) { slice(); });
    return counter(status[0].ports[0], "rx_packets");
  }
  // The interface has gone and is back, perhaps between two looks.
  void expect_attached_again() {
    ASSERT_TRUE(network->make_pair());
    configure();
    look_a_second_later();
    EXPECT_TRUE(is_attached());
    EXPECT_TRUE(datagram_arrives());
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_THAT(warnings[0], HasSubstr("interface port was removed"));
    EXPECT_THAT(warnings[1], HasSubstr("attached again at interface port"));
  }

  // A driver's RoCE device on the interface comes, in a sysfs of the test's own.
  void add_roce_hardware() {
    const std::filesystem::path device = machine.sys / "class/infiniband/mlx5_0";
    const auto attributes = device / "ports/1/gid_attrs";
    std::filesystem::create_directories(attributes / "types");
    std::filesystem::create_directories(attributes / "ndevs");
    std::filesystem::create_directories(device / "device");
    std::ofstream(attributes / "types/0") << "RoCE v2\n";
    std::ofstream(attributes / "ndevs/0") << "port\n";
    std::filesystem::create_symlink("/drivers/mlx5_core", device / "device/driver");
  }
  fabric::Machine machine;
  Poller poller = std::move(*Poller::create());
  std::unique_ptr<TestVeth> network;
  std::unique_ptr<Interfaces> interfaces;
  std::vector<std::string> warnings;
};

// Behind an interface of its own, or behind the one-armed interface.
class InterfaceOfAHost : public InterfacesTest, public testing::WithParamInterface<bool> {
 protected:
  void open(std::uint32_t mtu = 1024) { GetParam() ? open_one_armed(mtu) : open_host(mtu); }
};
INSTANTIATE_TEST_SUITE_P(OneArmedOrNot, InterfaceOfAHost, testing::Bool());

TEST_P(InterfaceOfAHost, IsAttachedAgainWhenItIsBackAfterItWasDeleted) {
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_TRUE(is_attached());
  EXPECT_TRUE(datagram_arrives());
  ASSERT_TRUE(TestVeth::ip("link delete dev port"));
  look_a_second_later();
  EXPECT_FALSE(is_attached());
  look_a_second_later();
  EXPECT_EQ(warnings.size(), 1u);
  expect_attached_again();
}

// Of the same name, but not the kernel's same interface.
TEST_P(InterfaceOfAHost, IsAttachedAgainWhenItWasMadeAgainBetweenTwoLooks) {
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_TRUE(TestVeth::ip("link delete dev port"));
  expect_attached_again();
}

// The fabric's packets have up to 4096 bytes.
TEST_P(InterfaceOfAHost, GivesItsMtuToThePort) {
  ASSERT_NO_FATAL_FAILURE(open(4096));
  EXPECT_EQ(path_mtu(), 1024) << "of 2048 bytes";
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("groups over it have packets of 1024 bytes"));
  TestVeth::ip("link set port mtu 4210");
  look_a_second_later();
  EXPECT_EQ(path_mtu(), 4096);
  TestVeth::ip("link set port mtu 2200");
  look_a_second_later();
  EXPECT_EQ(path_mtu(), 2048);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[1], HasSubstr("groups over it have packets of 2048 bytes"));
}

// During its lifetime this process gets no new descriptor.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(fabric::UniqueFd(dup(0)).get());
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(InterfacesTest, StayWhenDescriptorsRunOut) {
  ASSERT_NO_FATAL_FAILURE(open_one_armed());
  const NoDescriptorsLeft none;
  look_a_second_later();
  EXPECT_TRUE(is_attached());
  EXPECT_TRUE(warnings.empty());
}

TEST_F(InterfacesTest, ReportWhyTheyAreNotOpenedAgainWhenDescriptorsRunOut) {
  ASSERT_NO_FATAL_FAILURE(open_host());
  ASSERT_TRUE(TestVeth::ip("link delete dev port"));
  look_a_second_later();
  ASSERT_TRUE(network->make_pair());
  {
    const NoDescriptorsLeft none;
    look_a_second_later();
  }
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[1], HasSubstr("Too many open files"));
  look_a_second_later();
  EXPECT_TRUE(is_attached());
}

TEST_F(InterfacesTest, AreLeftAloneWhileTheyStay) {
  ASSERT_NO_FATAL_FAILURE(open_host());
  TestVeth::ip("link set dev port down");
  TestVeth::ip("link set dev port up");
  look_a_second_later();
  EXPECT_TRUE(is_attached());
  EXPECT_TRUE(warnings.empty());
}

// A driver's RDMA module may load long after the switch has started.
TEST_F(InterfacesTest, WarnOnceOfRoceHardwareThatComesLater) {
  std::string directory = testing::TempDir() + "sysXXXXXX";
  machine.sys = mkdtemp(directory.data());
  ASSERT_NO_FATAL_FAILURE(open_host());
  look_a_second_later();
  EXPECT_THAT(warnings, testing::IsEmpty());
  add_roce_hardware();
  look_a_second_later();
  look_a_second_later();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("interface port: RoCE device mlx5_0"));
  EXPECT_THAT(warnings[0], HasSubstr("enable_roce"));
  EXPECT_TRUE(is_attached()) << "registration goes on, and hosts learn the reason";
  std::filesystem::remove_all(machine.sys);
}

TEST_F(InterfacesTest, NeedNoLooksIfThereAreNone) {
  ASSERT_NO_FATAL_FAILURE(open(one_host()));
  EXPECT_EQ(interfaces->deadline(), wire::kNever);
}

}  // namespace
}  // namespace cepheus::live
