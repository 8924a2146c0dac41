#include "switch-emulator/ports/wire_port.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>

#include "switch-emulator/ports/received_frames.h"
#include "switch-emulator/ports/test_veth.h"
#include "wire/icrc.h"
#include "wire/probe.h"
#include "wire/roce.h"
#include "wire/test_bytes.h"

namespace cepheus::fabric {
namespace {

using wire::Arp;
using wire::Frame;
using wire::Ipv4;
using wire::Mac;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kLargestFrame = 1024 + 128;
constexpr Ipv4 kHost{10, 0, 0, 1}, kNeighbour{10, 0, 0, 2}, kGroup{198, 18, 0, 1};
constexpr Mac kHostMac{{2, 0, 0, 0, 0, 1}}, kGateway{{2, 0, 0, 0, 0, 0xFE}};

Bytes arp_frame(const Arp& arp, const Mac& to = {}) {
  Bytes bytes(60);
  wire::Ethernet ethernet{to, arp.sender_mac, wire::Ethernet::kArp};
  ethernet.emit(std::span(bytes).first<wire::Ethernet::kSize>());
  arp.emit(std::span(bytes).subspan<wire::Ethernet::kSize, Arp::kSize>());
  return bytes;
}

Bytes data_frame(std::size_t payload_bytes, Ipv4 from = kHost) {
  wire::RoceHeaders headers;
  headers.ip.source = from;
  headers.ip.destination = kGroup;
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  const Bytes payload(payload_bytes, 0xAB);
  Frame frame{};
  headers.emit(frame, payload_bytes);
  frame.set_external_payload(payload, wire::kNoBuffer);
  return wire::bytes_of(frame);
}

class WirePortTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto made = TestVeth::make(kLargestFrame);
    if (made) network = std::move(*made);
    if (!made) why_not = made.error().text;
  }
  static void TearDownTestSuite() { network.reset(); }

  void SetUp() override {
    if (!network) GTEST_SKIP() << why_not;
    TestVeth::ip("link set dev port up");
    const auto opened = port.open();
    ASSERT_TRUE(opened) << opened.error().text;
    flush();
    const auto probe = network->receive();
    ASSERT_TRUE(probe);
    first_words = *probe;
  }

  void flush() { flush_all(flush_list); }
  // The host announces itself.
  void introduce() {
    Arp arp;
    arp.operation = Arp::Operation::kReply;
    arp.sender_mac = kHostMac;
    arp.sender = kHost;
    network->send(arp_frame(arp));
    take_one();
  }
  // Waits as the fabric does: arm, sleep.
  bool await(Frame& into) {
    while (!port.receive(into)) {
      flush();
      if (!port.arm()) continue;
      pollfd waiting{port.fd(), POLLIN, 0};
      if (poll(&waiting, 1, 20'000) <= 0) return false;
    }
    return true;
  }
  // All frames before this one have been looked at, too.
  void take_one() {
    network->send(data_frame(4));
    ASSERT_TRUE(await(frame));
  }
  std::optional<Arp> next_arp() {
    const auto bytes = network->receive();
    if (!bytes || bytes->size() < 42) return std::nullopt;
    return Arp::parse(std::span(*bytes).subspan(wire::Ethernet::kSize));
  }
  std::uint64_t counted(PortCounter c) const { return port.counters()[c]; }

  static inline std::unique_ptr<TestVeth> network;
  static inline std::string why_not;
  PayloadPools pools{PoolGeometry::for_hosts(2, 1024)};
  std::unordered_set<Ipv4> neighbours{kHost, kNeighbour};
  FlushList flush_list;
  WirePort port{pools,
                neighbours,
                flush_list,
                {"port", kHost, kGateway, wire::kDefaultMcstPool, kLargestFrame}};
  Frame frame;
  Bytes first_words;
  wire::Instant now{std::chrono::hours(1)};
};

// As many other users as there may be find a place.
TEST_F(WirePortTest, LeavesThePoolOfItsUserWhenItCloses) {
  port.close();
  for (uid_t user = 2000; user < 2000 + PayloadPools::kMaxUsers; ++user) {
    EXPECT_TRUE(pools.pool_for(user)) << user;
  }
}

TEST_F(WirePortTest, ProbesForItsHostWhenItOpens) {
  const auto arp = Arp::parse(std::span(first_words).subspan(wire::Ethernet::kSize));
  ASSERT_TRUE(arp);
  EXPECT_EQ(arp->operation, Arp::Operation::kRequest);
  EXPECT_EQ(arp->target, kHost);
  EXPECT_TRUE(arp->sender.is_unset());
  EXPECT_THAT(std::span(first_words).first(6), testing::Each(0xFF));
}

TEST_F(WirePortTest, AnswersForGroupsAndNeighboursOnly) {
  Arp query;
  query.sender_mac = kHostMac;
  query.sender = kHost;
  for (const Ipv4 target : {kHost, Ipv4(10, 0, 0, 9), kGroup, kNeighbour}) {
    query.target = target;
    network->send(arp_frame(query));
  }
  take_one();
  flush();
  for (const Ipv4 target : {kGroup, kNeighbour}) {
    const auto answer = next_arp();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->operation, Arp::Operation::kReply);
    EXPECT_EQ(answer->sender, target);
    EXPECT_EQ(answer->sender_mac, kGateway);
    EXPECT_EQ(answer->target, kHost);
  }
  EXPECT_EQ(counted(PortCounter::kArpAnswered), 2u);
}

TEST_F(WirePortTest, TakesPayloadsIntoThePoolOnce) {
  network->send(data_frame(1024));
  ASSERT_TRUE(await(frame));
  EXPECT_NE(frame.ref, wire::kNoBuffer);
  EXPECT_EQ(frame.payload_len, 1024u);
  EXPECT_THAT(frame.payload(), testing::Each(0xAB));
  EXPECT_EQ(frame.icrc_state, wire::Icrc::kPresent);
  EXPECT_TRUE(wire::check_icrc(frame));
  pools.drop(frame.ref);
}

TEST_F(WirePortTest, KeepsSmallPayloadsInTheFrame) {
  network->send(data_frame(8));
  ASSERT_TRUE(await(frame));
  EXPECT_EQ(frame.ref, wire::kNoBuffer);
  EXPECT_EQ(frame.external, nullptr);
  EXPECT_THAT(frame.payload(), testing::Each(0xAB));
}

TEST_F(WirePortTest, DeliversToTheMacAddressItLearned) {
  introduce();
  const Bytes sent = data_frame(1024, kGroup);
  ASSERT_TRUE(port.deliver(*Frame::from_bytes(sent), kFabricItself, now));
  flush();
  const auto got = network->receive();
  ASSERT_TRUE(got);
  EXPECT_THAT(std::span(*got).first(6), testing::ElementsAreArray(kHostMac.octets));
  EXPECT_TRUE(std::equal(got->begin() + 12, got->end(), sent.begin() + 12, sent.end()));
}

TEST_F(WirePortTest, LearnsItsAddressFromTheHostOnly) {
  introduce();
  constexpr Mac kOther{{2, 0, 0, 0, 0, 9}};
  Arp claim;
  claim.operation = Arp::Operation::kReply;
  claim.sender = kHost;
  for (const Mac& mac :
       {Mac{}, Mac{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}}, Mac{{1, 0, 0x5E, 0, 0, 1}}}) {
    claim.sender_mac = mac;
    network->send(arp_frame(claim));
  }
  Bytes in_anothers_name = arp_frame(claim);
  std::copy(kOther.octets.begin(), kOther.octets.end(), in_anothers_name.begin() + 22);
  network->send(in_anothers_name);
  take_one();
  ASSERT_TRUE(port.deliver(*Frame::from_bytes(data_frame(64)), kFabricItself, now));
  flush();
  const auto got = network->receive();
  ASSERT_TRUE(got);
  EXPECT_THAT(std::span(*got).first(6), testing::ElementsAreArray(kHostMac.octets));
}

TEST_F(WirePortTest, ProbesAgainForAHostThatHasNotAnswered) {
  EXPECT_FALSE(port.deliver(*Frame::from_bytes(data_frame(64)), kFabricItself, now));
  EXPECT_EQ(counted(PortCounter::kDropNoNeighbour), 1u);
  flush();
  const auto probe = next_arp();
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->target, kHost);
}

TEST_F(WirePortTest, ProbesForASilentHostNowAndThenNotForEachFrame) {
  constexpr int kFrames = 1000;
  for (int i = 0; i < kFrames; ++i) {
    EXPECT_FALSE(port.deliver(*Frame::from_bytes(data_frame(64)), kFabricItself, now));
    now += std::chrono::milliseconds(1);
    flush();
  }
  Arp query;
  query.sender_mac = kHostMac;
  query.sender = kHost;
  query.target = kGroup;
  network->send(arp_frame(query));
  take_one();
  flush();
  int questions = 0;
  for (auto arp = next_arp(); arp && arp->operation == Arp::Operation::kRequest; arp = next_arp()) {
    EXPECT_EQ(arp->target, kHost);
    ++questions;
  }
  EXPECT_EQ(questions, 10);
  EXPECT_EQ(counted(PortCounter::kDropNoNeighbour), static_cast<std::uint64_t>(kFrames));
}

TEST_F(WirePortTest, DeliversMoreFramesThanItsRingHolds) {
  introduce();
  const Bytes sent = data_frame(100);
  const Frame out = *Frame::from_bytes(sent);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 50; ++i)
      ASSERT_TRUE(port.deliver(out, kFabricItself, now)) << round << ", " << i;
    flush();
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(network->receive()) << round << ", " << i;
  }
  EXPECT_EQ(counted(PortCounter::kDropEgressFull), 0u);
}

TEST_F(WirePortTest, ReceivesMoreFramesThanItsRingHolds) {
  const Bytes sent = data_frame(512);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(network->send(sent));
    ASSERT_TRUE(await(frame)) << i;
    ASSERT_EQ(frame.payload_len, 512u);
    pools.drop(frame.ref);
  }
}

// However many requests come, the other ports have their turn.
TEST_F(WirePortTest, LimitsTheAnswersOfOneLook) {
  Arp question;
  question.operation = Arp::Operation::kRequest;
  question.sender_mac = kHostMac;
  question.sender = kHost;
  question.target = kGroup;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(network->send(arp_frame(question)));
  EXPECT_FALSE(port.receive(frame));
  EXPECT_LE(counted(PortCounter::kArpAnswered), 64u);
  take_one();
  EXPECT_EQ(counted(PortCounter::kArpAnswered), 100u);
}

TEST_F(WirePortTest, CountsUnusableFrames) {
  Bytes tagged = data_frame(64);
  tagged[12] = 0x81;
  tagged[13] = 0x00;
  network->send(tagged);
  Bytes cut = data_frame(64);
  cut.resize(50);  // IPv4's total length is larger
  network->send(cut);
  Bytes arp(60);
  arp[12] = 0x08;
  arp[13] = 0x06;
  network->send(arp);
  take_one();
  EXPECT_EQ(counted(PortCounter::kDropTagged), 1u);
  EXPECT_EQ(counted(PortCounter::kDropMalformed), 2u);
}

// The answer shows its host the tag; every other frame with a tag is dropped.
TEST_F(WirePortTest, TakesAProbeWithItsTag) {
  const auto tagged_probe = [](wire::Ipv4 to) {
    wire::Probe probe;
    probe.header.type = wire::MrpType::kProbe;
    wire::UdpDatagram datagram;
    datagram.ip.source = kHost;
    datagram.ip.destination = to;
    datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
    Frame made;
    datagram.emit(made, wire::bytes_of(probe));
    Bytes bytes = wire::bytes_of(made);
    const Bytes tag{0x81, 0x00, 0x60, 0x05};
    bytes.insert(bytes.begin() + 12, tag.begin(), tag.end());
    return bytes;
  };
  network->send(tagged_probe(kNeighbour));
  network->send(tagged_probe(kGroup));
  ASSERT_TRUE(await(frame));
  EXPECT_EQ(frame.vlan_tag, 0x6005);
  EXPECT_EQ(counted(PortCounter::kDropTagged), 1u);
}

// As NICs send whose priorities are configured without a VLAN.
TEST_F(WirePortTest, TakesFramesWithAPriorityButNoVlan) {
  Bytes tagged = data_frame(64);
  const Bytes priority{0x81, 0x00, 0x60, 0x00};
  tagged.insert(tagged.begin() + 12, priority.begin(), priority.end());
  network->send(tagged);
  ASSERT_TRUE(await(frame));
  EXPECT_EQ(counted(PortCounter::kDropTagged), 0u);
}

TEST_F(WirePortTest, CountsTagsThatADriverLeavesInPlace) {
  Bytes tagged(64);
  tagged[12] = 0x81;
  InterfaceDriver::Received received;
  received.bytes = tagged;
  EXPECT_EQ(flaw_of(received, kLargestFrame, wire::kDefaultMcstPool), PortCounter::kDropTagged);
}

// Its receivers' NICs then slow down their sender before copies are lost.
TEST_F(WirePortTest, MarksCopiesWhileItsRingFills) {
  if (!TestVeth::stop_link()) {
    GTEST_SKIP() << "no token bucket: apt-get install iproute2, modprobe sch_tbf";
  }
  introduce();
  wire::RoceHeaders headers;
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  const auto send = [&](wire::Ecn ecn) {
    headers.ip.tos = static_cast<std::uint8_t>(ecn);
    Frame copy{};
    headers.emit(copy, 0);
    EXPECT_TRUE(port.deliver(copy, kFabricItself, now));
    flush();
    return counted(PortCounter::kMarkedByFill);
  };
  EXPECT_EQ(port.fill(), 0u);
  EXPECT_EQ(send(wire::Ecn::kEct0), 0u);
  for (std::uint32_t n = 0; n < PacketSocket::kSendSlots / 2; ++n) send(wire::Ecn::kNotCapable);
  EXPECT_EQ(counted(PortCounter::kMarkedByFill), 0u);
  EXPECT_EQ(send(wire::Ecn::kEct0), 1u);
  EXPECT_GE(port.fill(), 25u);
  ASSERT_TRUE(TestVeth::resume_link());
}

TEST_F(WirePortTest, DropsFramesWhileItsInterfaceIsDown) {
  introduce();
  ASSERT_TRUE(TestVeth::ip("link set dev port down"));
  const Bytes sent = data_frame(64);
  for (int i = 0; i < 3000; ++i)
    port.deliver(*Frame::from_bytes(sent), kFabricItself, now), flush();
  EXPECT_EQ(counted(PortCounter::kDropLinkDown), 3000u);
  EXPECT_EQ(counted(PortCounter::kDropEgressFull), 0u);
  ASSERT_TRUE(TestVeth::ip("link set dev port up"));
  port.clear_error();
  ASSERT_TRUE(port.deliver(*Frame::from_bytes(sent), kFabricItself, now));
  flush();
  EXPECT_TRUE(network->receive());
}

// Another class of traffic begins while the interface is down: frames before are taken back.
TEST_F(WirePortTest, SendsTheBytesOfAFrameWhosePriorityIsNew) {
  port.close();
  const auto opened = PacketSocket::open("port", kLargestFrame, PacketSocket::Filter::kEverything);
  ASSERT_TRUE(opened) << opened.error().text;
  PacketSocket& socket = **opened;
  ASSERT_TRUE(TestVeth::ip("link set dev port down"));
  socket.clear_error();
  const Bytes lost = data_frame(68, kHost);  // a length of no other test
  Bytes kept = data_frame(68, kNeighbour);
  const auto place = std::span(kept).subspan<wire::kIpOffset, wire::Ipv4Header::kSize>();
  wire::Ipv4Header ip = *wire::Ipv4Header::parse(place);
  ip.tos = 106;
  ip.emit(place);
  EXPECT_EQ(socket.send(*Frame::from_bytes(lost), kGateway, kHostMac), std::nullopt);
  EXPECT_EQ(socket.send(*Frame::from_bytes(kept), kGateway, kHostMac), std::nullopt);
  ASSERT_TRUE(TestVeth::ip("link set dev port up"));
  socket.clear_error();
  EXPECT_EQ(socket.kick(), 1u) << "the first frame, while the interface was down";
  std::optional<Bytes> got;
  do {
    got = network->receive();
    ASSERT_TRUE(got);
  } while (got->size() != kept.size());
  EXPECT_TRUE(std::ranges::equal(std::span(*got).subspan(wire::kIpOffset),
                                 std::span(kept).subspan(wire::kIpOffset)));
}

TEST_F(WirePortTest, NamesAMissingInterfaceAndATooSmallMtu) {
  const auto absent =
      PacketSocket::open("nowhere", kLargestFrame, PacketSocket::Filter::kEverything);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().text, testing::HasSubstr("no interface nowhere"));
  const auto small = PacketSocket::open("port", 4096 + 128, PacketSocket::Filter::kEverything);
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().text, testing::HasSubstr("ip link set port mtu 4210"));
}

}  // namespace
}  // namespace cepheus::fabric
