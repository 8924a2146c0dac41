// Hosts behind one interface, byte by byte: a veth pair whose other end is a packet socket.
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>

#include "switch-emulator/ports/dpdk_driver.h"
#include "switch-emulator/ports/one_armed_interface.h"
#include "switch-emulator/ports/test_veth.h"
#include "wire/arp.h"
#include "wire/byte_order.h"
#include "wire/icrc.h"
#include "wire/roce.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

using wire::Frame;
using wire::Ipv4;
using wire::Mac;
using Bytes = std::vector<std::uint8_t>;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr std::uint32_t kLargestFrame = 1024 + 128;
constexpr Ipv4 kFirst{10, 0, 0, 1}, kSecond{10, 0, 0, 2}, kFar{10, 1, 0, 1}, kSilent{10, 0, 0, 9},
    kGateway{10, 0, 0, 100}, kGroup{198, 18, 0, 1};
constexpr Mac kFirstMac{{2, 0, 0, 0, 0, 1}}, kSecondMac{{2, 0, 0, 0, 0, 2}},
    kRouterMac{{2, 0, 0, 0, 0, 0xFD}}, kSpareMac{{2, 0, 0, 0, 0, 0xFE}},
    kStranger{{2, 0, 0, 0, 0, 0x66}};

Bytes data_frame(const Mac& to, const Mac& from, Ipv4 source, Ipv4 destination = kGroup,
                 std::size_t payload_bytes = 512, std::uint8_t fill = 0xAB) {
  wire::RoceHeaders headers;
  headers.ethernet.destination = to;
  headers.ethernet.source = from;
  headers.ip.source = source;
  headers.ip.destination = destination;
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  const Bytes payload(payload_bytes, fill);
  Frame frame{};
  headers.emit(frame, payload_bytes);
  frame.set_external_payload(payload, wire::kNoBuffer);
  return wire::bytes_of(frame);
}

// The DPDK device for the interface, or none: a packet socket.
constexpr const char* kDpdkDevice = "net_af_packet0,iface=port,framesz=2048,blocksz=65536";
std::vector<std::string> drivers() {
#ifdef CEPHEUS_HAS_DPDK
  return {"", kDpdkDevice};
#else
  return {""};
#endif
}

class OneArmedTest : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    auto made = TestVeth::make(kLargestFrame);
    if (!made) {
      why_not = made.error().text;
      return;
    }
    network = std::move(*made);
    TestVeth::ip("address add 10.0.0.254/24 dev port");
    TestVeth::ip("route add 10.1.0.0/16 via 10.0.0.100");
  }
  static void TearDownTestSuite() { network.reset(); }

  void SetUp() override {
    if (!network) GTEST_SKIP() << why_not;
    place_hosts();
    TestVeth::ip("neigh flush to 10.0.0.9 dev port");
  }

  static void place_hosts() {
    is_at(kFirst, kFirstMac);
    is_at(kSecond, kSecondMac);
    is_at(kGateway, kRouterMac);
  }
  static void is_at(Ipv4 address, const Mac& mac) {
    TestVeth::ip("neigh replace " + address.to_string() + " lladdr " + mac.to_string() +
                 " nud permanent dev port");
  }
  OneArmedPort& add(Ipv4 host, std::optional<Mac> mac = {}, bool any_mac = false) {
    ports.push_back(std::make_unique<OneArmedPort>(interface, flush_list,
                                                   OneArmedHost{ports.size(), host, mac, any_mac}));
    interface.add(*ports.back());
    return *ports.back();
  }
  void open() {
    const auto opened = interface.open(now);
    ASSERT_TRUE(opened) << opened.error().text;
    own = interface.next_hops().own_mac();
    place_hosts();  // DPDK's driver has made the kernel forget them
    now += std::chrono::seconds(1);
  }
  // Sends these, and one for all hosts; waits for the last.
  void bring(const std::vector<Bytes>& frames) {
    for (const Bytes& each : frames) ASSERT_TRUE(network->send(each));
    ASSERT_TRUE(network->send(data_frame(own, kStranger, kWitness)));
    const std::uint64_t before = interface.counters()[PortCounter::kDropUnknownSource];
    std::uint64_t looks = 0;
    while (interface.counters()[PortCounter::kDropUnknownSource] == before) {
      if (interface.take_in(now, woken)) continue;
      if (interface.fd() < 0) {
        ASSERT_LT(++looks, kMostLooks);
        sched_yield();
        continue;
      }
      pollfd waiting{interface.fd(), POLLIN, 0};
      ASSERT_GT(poll(&waiting, 1, 20'000), 0);
    }
  }
  void expect_taken(OneArmedPort& port, std::uint32_t frames) {
    Frame frame;
    std::uint32_t taken = 0;
    for (; port.receive(frame); ++taken) {
      EXPECT_TRUE(wire::check_icrc(frame));
      if (frame.ref != wire::kNoBuffer) pools.drop(frame.ref);
    }
    EXPECT_EQ(taken, frames);
  }
  void flush() { flush_all(flush_list); }
  // The next RoCE packet that leaves; skips the kernel's own requests and other packets.
  std::optional<Bytes> next_copy() {
    for (;;) {
      auto bytes = network->receive();
      if (!bytes || (bytes->size() > wire::kBthOffset &&
                     wire::load_be16(bytes->data() + wire::kUdpOffset + 2) == wire::kRoceUdpPort)) {
        return bytes;
      }
    }
  }
  // The next one for the silent host, from a stranger.
  bool answer_question() {
    std::optional<wire::Arp> question;
    while (!question || question->target != kSilent) {
      const auto bytes = network->receive();
      if (!bytes) return false;
      if (bytes->size() < 42 || (*bytes)[12] != 8 || (*bytes)[13] != 6) continue;
      question = wire::Arp::parse(std::span(*bytes).subspan(wire::Ethernet::kSize));
    }
    wire::Arp answer;
    answer.operation = wire::Arp::Operation::kReply;
    answer.sender_mac = kStranger;
    answer.sender = kSilent;
    answer.target_mac = own;
    answer.target = question->sender;
    Bytes bytes(60);
    wire::Ethernet ethernet{own, kStranger, wire::Ethernet::kArp};
    ethernet.emit(std::span(bytes).first<wire::Ethernet::kSize>());
    answer.emit(std::span(bytes).subspan<wire::Ethernet::kSize, wire::Arp::kSize>());
    return network->send(bytes);
  }
  std::uint64_t left_alone(PortCounter c) const { return interface.counters()[c]; }

  static constexpr std::uint64_t kMostLooks = 100'000'000;  // without events
  static constexpr Ipv4 kWitness{10, 0, 0, 77};
  static inline std::unique_ptr<TestVeth> network;
  static inline std::string why_not;
  PayloadPools pools{PoolGeometry::for_hosts(4, 1024)};
  FlushList flush_list;
  OneArmedInterface interface {
    pools, { "port", wire::kDefaultMcstPool, kLargestFrame, GetParam() }
  };
  std::vector<std::unique_ptr<OneArmedPort>> ports;
  std::vector<std::size_t> woken;
  Mac own;
  wire::Instant now{std::chrono::hours(1)};
};

TEST_P(OneArmedTest, DistinguishesHostsBySourceAddress) {
  OneArmedPort& first = add(kFirst);
  OneArmedPort& second = add(kSecond);
  open();
  bring({data_frame(own, kFirstMac, kFirst), data_frame(own, kSecondMac, kSecond),
         data_frame(own, kFirstMac, kFirst)});
  EXPECT_THAT(woken, testing::ElementsAre(0, 1));
  expect_taken(first, 2);
  expect_taken(second, 1);
}

TEST_P(OneArmedTest, BindsAHostToTheMacAddressThatItWasFirstSeenWith) {
  OneArmedPort& first = add(kFirst);
  open();
  bring({data_frame(own, kFirstMac, kFirst), data_frame(own, kStranger, kFirst)});
  expect_taken(first, 1);
  EXPECT_EQ(first.counters()[PortCounter::kDropWrongMac], 1u);
  EXPECT_EQ(first.refused(), 0u);  // not caused by the host
}

TEST_P(OneArmedTest, BindsAHostToTheMacAddressThatTheTopologyNames) {
  OneArmedPort& first = add(kFirst, kSpareMac);
  open();
  bring({data_frame(own, kFirstMac, kFirst), data_frame(own, kSpareMac, kFirst)});
  expect_taken(first, 1);
  EXPECT_EQ(first.counters()[PortCounter::kDropWrongMac], 1u);
}

TEST_P(OneArmedTest, BindsAHostToNoMacAddressIfAnyIsAllowed) {
  OneArmedPort& first = add(kFirst, {}, true);
  open();
  bring({data_frame(own, kFirstMac, kFirst), data_frame(own, kStranger, kFirst)});
  expect_taken(first, 2);
}

TEST_P(OneArmedTest, BindsHostsBehindARouterToItsMacAddressAsItChanges) {
  OneArmedPort& far = add(kFar);
  open();
  bring({data_frame(own, kRouterMac, kFar), data_frame(own, kStranger, kFar)});
  expect_taken(far, 1);
  EXPECT_EQ(far.counters()[PortCounter::kDropWrongMac], 1u);
  is_at(kGateway, kSpareMac);
  now += std::chrono::seconds(1);
  bring({data_frame(own, kRouterMac, kFar), data_frame(own, kSpareMac, kFar)});
  expect_taken(far, 1);
  EXPECT_EQ(far.counters()[PortCounter::kDropWrongMac], 2u);
}

TEST_P(OneArmedTest, IgnoresFramesForNoGroupOrForAnotherMachine) {
  OneArmedPort& first = add(kFirst);
  open();
  bring({data_frame(own, kFirstMac, kFirst, kSecond), data_frame(own, kFirstMac, kFirst, kWitness),
         data_frame(kSecondMac, kFirstMac, kFirst)});
  // DPDK also delivers this machine's own packets.
  EXPECT_GE(left_alone(PortCounter::kDropNotForGroups), 3u);
  EXPECT_EQ(left_alone(PortCounter::kDropUnknownSource), 1u);  // the last one's
  expect_taken(first, 0);
}

TEST_P(OneArmedTest, SendsFromItsOwnMacAddressToTheHostOrItsRouter) {
  OneArmedPort& first = add(kFirst);
  OneArmedPort& far = add(kFar);
  open();
  const Bytes copy = data_frame({}, {}, kGroup, kFirst);
  for (OneArmedPort* port : {&first, &far}) {
    ASSERT_TRUE(port->deliver(*Frame::from_bytes(copy), kFabricItself, now));
  }
  flush();
  for (const Mac& to : {kFirstMac, kRouterMac}) {
    const auto got = next_copy();
    ASSERT_TRUE(got);
    EXPECT_THAT(std::span(*got).first(6), ElementsAreArray(to.octets));
    EXPECT_THAT(std::span(*got).subspan(6, 6), ElementsAreArray(own.octets));
    EXPECT_TRUE(std::equal(got->begin() + 12, got->end(), copy.begin() + 12, copy.end()));
  }
}

// VLAN interfaces and queueing disciplines choose by it.
TEST_P(OneArmedTest, SendsWithThePriorityOfTheTrafficClass) {
  OneArmedPort& first = add(kFirst);
  open();
  if (interface.fd() < 0)
    GTEST_SKIP() << "DPDK's frames have no priority: the packet socket's run shows it";
  Bytes copy = data_frame({}, {}, kGroup, kFirst);
  for (const auto& [tos, priority] : {std::pair(106, 3), std::pair(0, 0), std::pair(0xE0, 6)}) {
    const auto place = std::span(copy).subspan<wire::kIpOffset, wire::Ipv4Header::kSize>();
    wire::Ipv4Header ip = *wire::Ipv4Header::parse(place);
    ip.tos = static_cast<std::uint8_t>(tos);
    ip.emit(place);
    ASSERT_TRUE(first.deliver(*Frame::from_bytes(copy), kFabricItself, now));
    int set = -1;
    socklen_t length = sizeof set;
    getsockopt(interface.fd(), SOL_SOCKET, SO_PRIORITY, &set, &length);
    EXPECT_EQ(set, priority) << "TOS " << tos;
  }
  flush();
  for (const int tos : {106, 0, 0xE0}) {
    const auto got = next_copy();
    ASSERT_TRUE(got) << "frames of another priority were queued behind it";
    EXPECT_EQ((*got)[wire::kIpOffset + 1], tos);
  }
}

// A payload stays in place until every copy has left, even if its other references are gone.
TEST_P(OneArmedTest, SendsCopiesOfAPayloadWithoutOtherReferences) {
  OneArmedPort& first = add(kFirst);
  OneArmedPort& second = add(kSecond);
  open();
  const Bytes sent = data_frame(own, kFirstMac, kFirst, kGroup, 1024);
  bring({sent});
  Frame frame;
  ASSERT_TRUE(first.receive(frame));
  for (OneArmedPort* port : {&first, &second}) {
    ASSERT_TRUE(port->deliver(frame, kFabricItself, now));
  }
  pools.drop(frame.ref);
  bring({data_frame(own, kFirstMac, kFirst, kGroup, 1024, 0xCD)});
  ASSERT_TRUE(first.receive(frame));
  flush();
  for (int copy = 0; copy < 2; ++copy) {
    const auto got = next_copy();
    ASSERT_TRUE(got);
    EXPECT_TRUE(std::equal(got->begin() + 12, got->end(), sent.begin() + 12, sent.end()));
  }
  pools.drop(frame.ref);
  EXPECT_EQ(pools.in_use(0, pools.geometry().switch_area()), 0u);
}

TEST_P(OneArmedTest, FollowsAHostToAnotherMacAddressWithinASecond) {
  OneArmedPort& first = add(kFirst);
  open();
  is_at(kFirst, kSpareMac);
  now += std::chrono::seconds(1);
  ASSERT_TRUE(
      first.deliver(*Frame::from_bytes(data_frame({}, {}, kGroup, kFirst)), kFabricItself, now));
  flush();
  const auto got = next_copy();
  ASSERT_TRUE(got);
  EXPECT_THAT(std::span(*got).first(6), ElementsAreArray(kSpareMac.octets));
}

TEST_P(OneArmedTest, MakesTheKernelResolveAnUnknownHost) {
  OneArmedPort& silent = add(kSilent);
  open();
  const auto bytes = data_frame({}, {}, kGroup, kSilent);
  const Frame copy = *Frame::from_bytes(bytes);
  EXPECT_FALSE(silent.deliver(copy, kFabricItself, now));
  EXPECT_EQ(silent.counters()[PortCounter::kDropNoNeighbour], 1u);
  // Earlier tests' requests may still be there; the kernel accepts only answers to its own ones.
  bool known = false;
  for (int answers = 0; !known && answers < 10; ++answers) {
    ASSERT_TRUE(answer_question());
    now += std::chrono::milliseconds(100);
    known = silent.deliver(copy, kFabricItself, now);
  }
  EXPECT_TRUE(known);
}

TEST_P(OneArmedTest, LeavesSpaceToOthersWhenOneHostFloods) {
  OneArmedPort& first = add(kFirst);
  OneArmedPort& second = add(kSecond);
  open();
  const Bytes flood = data_frame(own, kFirstMac, kFirst);
  for (int i = 0; i < 5; ++i) bring(std::vector<Bytes>(500, flood));
  EXPECT_GT(first.counters()[PortCounter::kDropIngressFull], 0u);
  bring({data_frame(own, kSecondMac, kSecond)});
  expect_taken(second, 1);
  first.close();
  EXPECT_EQ(pools.in_use(0, pools.geometry().switch_area()), 0u);
}

// As a bond's address when another of its NICs takes over.
TEST_P(OneArmedTest, FollowsItsInterfaceToAnotherMacAddress) {
  OneArmedPort& first = add(kFirst);
  open();
  const Mac before = own;
  TestVeth::ip("link set dev port address " + kSpareMac.to_string());
  ASSERT_TRUE(interface.look());
  own = interface.next_hops().own_mac();
  EXPECT_EQ(own, kSpareMac);
  place_hosts();
  bring({data_frame(own, kFirstMac, kFirst)});
  expect_taken(first, 1);
  TestVeth::ip("link set dev port address " + before.to_string());
}

// As many other users as there may be find a place.
TEST_P(OneArmedTest, LeavesThePoolOfItsUserWhenItCloses) {
  add(kFirst);
  open();
  interface.close();
  for (uid_t user = 2000; user < 2000 + PayloadPools::kMaxUsers; ++user) {
    EXPECT_TRUE(pools.pool_for(user)) << user;
  }
}

TEST_P(OneArmedTest, RefusesAHostThatIsNotBehindIt) {
  add(Ipv4(192, 0, 2, 1));
  const auto opened = interface.open(now);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text,
              HasSubstr("packets to 192.0.2.1 do not leave by interface port"));
  EXPECT_THAT(opened.error().text, HasSubstr("ip route add 192.0.2.1 via GATEWAY dev port"));
}

TEST_P(OneArmedTest, NamesTheInterfaceThatAHostIsBehindInstead) {
  TestVeth::ip("link set dev lo up");
  TestVeth::ip("route add 192.0.2.2 dev lo");
  add(Ipv4(192, 0, 2, 2));
  const auto opened = interface.open(now);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text, HasSubstr("do not leave by interface port, but by lo"));
}

TEST_P(OneArmedTest, RefusesAMachineThatWouldRouteTheGroupsPacketsToo) {
  add(kFirst);
  const auto set_forwarding = [](int to) {
    std::ofstream("/proc/sys/net/ipv4/conf/port/forwarding") << to;
  };
  set_forwarding(1);
  TestVeth::ip("route add default via 10.0.0.100");
  const auto refused = interface.open(now);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("ip route add blackhole 198.18.0.0/15"));
  TestVeth::ip("route add blackhole 198.18.0.0/16");
  EXPECT_FALSE(interface.open(now)) << "half of the groups' addresses";
  TestVeth::ip("route add blackhole 198.18.0.0/15");
  const auto opened = interface.open(now);
  EXPECT_TRUE(opened) << opened.error().text;
  EXPECT_TRUE(interface.look());
  TestVeth::ip("route del blackhole 198.18.0.0/15");
  const auto routed = interface.look();
  const bool has_dpdk = !std::string_view(GetParam()).empty();
  EXPECT_EQ(routed.has_value(), has_dpdk) << "a while later";
  if (!routed) {
    EXPECT_THAT(routed.error().text, HasSubstr("ip route add blackhole 198.18.0.0/15"));
  }
  set_forwarding(0);
  EXPECT_TRUE(interface.look());
  TestVeth::ip("route del blackhole 198.18.0.0/16");
  TestVeth::ip("route del default");
}

#ifdef CEPHEUS_HAS_DPDK
// The driver would drop them, and count nothing.
TEST(Dpdk, RefusesADeviceWhoseSlotsAreShorterThanThePackets) {
  PayloadPools pools{PoolGeometry::for_hosts(4, 4096)};
  for (const std::string slots : {"", ",framesz=4096"}) {
    const auto opened = DpdkDriver::open("net_af_packet9,iface=port" + slots, 4096 + 128,
                                         wire::kDefaultMcstPool, pools, 0);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().text, HasSubstr("add framesz=8192,blocksz=65536"));
  }
}
#else
TEST(Dpdk, RefusesADeviceWhoseSlotsAreShorterThanThePackets) {
  GTEST_SKIP() << "built without DPDK: install libdpdk-dev, and configure again";
}
#endif

INSTANTIATE_TEST_SUITE_P(Drivers, OneArmedTest, testing::ValuesIn(drivers()), [](const auto& each) {
  return std::string(each.param.empty() ? "PacketSocket" : "Dpdk");
});

}  // namespace
}  // namespace cepheus::fabric
