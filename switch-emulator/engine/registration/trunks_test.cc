// Leaf switches 0 to 2 with two hosts each, spines 3 and 4; HELLOs every 25 ms.
#include "switch-emulator/engine/registration/trunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kSpine = 3, kOtherSpine = 4;
constexpr Duration kHello = 25ms;
constexpr Duration kSilence = (wire::times::kHellosMissed + 1) * kHello;

class LeafSpine : public testing::Test {
 protected:
  LeafSpine() {
    for (int s = 0; s < 5; ++s) net_.config(net_.add_switch()).hello = kHello;
    for (std::size_t leaf = 0; leaf < 3; ++leaf) {
      net_.add_host(leaf);
      net_.add_host(leaf);
      net_.link(leaf, kSpine);
      net_.link(leaf, kOtherSpine);
    }
    net_.start();
    net_.lose = [this](std::size_t from, std::size_t to, const std::string&) {
      return silent_.contains({from, to});
    };
    net_.advance(kHello);
  }
  void silence(std::size_t a, std::size_t b) {
    silent_.insert({a, b});
    silent_.insert({b, a});
  }
  bool is_up(std::size_t at, std::size_t towards) {
    return net_.sw(at).is_up(net_.port_between(at, towards));
  }
  // The cable is cut, and both ends see it.
  void cut(std::size_t a, std::size_t b) {
    silence(a, b);
    net_.set_port(a, net_.port_between(a, b), false);
    net_.set_port(b, net_.port_between(b, a), false);
  }
  // Of kFlows datagrams from one host to another, the number that arrives.
  std::size_t arrive(std::size_t from, std::size_t to) {
    net_.clear();
    for (std::uint16_t flow = 0; flow < kFlows; ++flow) {
      auto h = net_.headers_from(from, wire::Opcode::kRcSendOnly, 0);
      h.ip.destination = TestNetwork::ip(to);
      h.udp.source_port = static_cast<std::uint16_t>(0xC000 + flow);
      net_.inject(from, net_.make_frame(from, h, 8));
    }
    return net_.frames(to).size();
  }

  static constexpr std::size_t kFlows = 16;
  TestNetwork net_;
  std::set<std::pair<std::size_t, std::size_t>> silent_;
};

TEST_F(LeafSpine, IsUpWhileHellosArriveBothWays) {
  net_.advance(1s);
  for (std::size_t leaf = 0; leaf < 3; ++leaf) {
    for (const std::size_t spine : {kSpine, kOtherSpine}) {
      EXPECT_TRUE(is_up(leaf, spine) && is_up(spine, leaf));
    }
    EXPECT_EQ(net_.count(Counter::kTrunkDark, leaf), 0u);
  }
  EXPECT_EQ(arrive(0, 2), kFlows);
}

TEST_F(LeafSpine, TrunksThatAreSilentGoDarkAtBothEndsAndComeBack) {
  silence(0, kSpine);
  net_.advance(kSilence - 2 * kHello);
  EXPECT_TRUE(is_up(0, kSpine)) << "a few may be lost";
  net_.advance(2 * kHello);
  EXPECT_FALSE(is_up(0, kSpine) || is_up(kSpine, 0));
  EXPECT_TRUE(is_up(0, kOtherSpine) && is_up(1, kSpine));
  EXPECT_EQ(net_.count(Counter::kTrunkDark, 0), 1u);
  EXPECT_EQ(arrive(0, 2), kFlows);
  EXPECT_EQ(arrive(2, 0), kFlows);
  silent_.clear();
  net_.advance(4 * kHello);
  EXPECT_FALSE(is_up(0, kSpine)) << "one answer is no proof";
  net_.advance(kSilence);
  EXPECT_TRUE(is_up(0, kSpine) && is_up(kSpine, 0));
}

TEST_F(LeafSpine, TrunksThatAreSilentOneWayGoDarkAtBothEnds) {
  silent_.insert({0, kSpine});
  net_.advance(kSilence + kHello);
  EXPECT_FALSE(is_up(0, kSpine) || is_up(kSpine, 0));
  silent_.clear();
  net_.advance(2 * kSilence);
  EXPECT_TRUE(is_up(0, kSpine) && is_up(kSpine, 0));
}

// HELLOs are small and may be lost where data gets through.
TEST_F(LeafSpine, AnyFrameShowsThatTheFarEndIsAlive) {
  net_.lose = [](std::size_t from, std::size_t to, const std::string& text) {
    return from == kSpine && to == 0 && text == "hello e0";
  };
  auto h = net_.headers_from(2, wire::Opcode::kRcSendOnly, 0);
  h.ip.destination = TestNetwork::ip(0);
  for (int i = 0; i < 40; ++i) {
    for (std::uint16_t flow = 0; flow < kFlows; ++flow) {
      h.udp.source_port = static_cast<std::uint16_t>(0xC000 + flow);
      net_.inject(2, net_.make_frame(2, h, 8));
    }
    net_.advance(kHello);
  }
  EXPECT_TRUE(is_up(0, kSpine) && is_up(kSpine, 0));
}

// A stopped process compares times only: no neighbour could have answered it.
TEST(Trunks, AreNotDarkBecauseTheSwitchItselfDidNotRun) {
  SwitchConfig config;
  config.ports.resize(1);
  config.ports[0].kind = PortKind::kSwitch;
  TestPayloads payloads;
  Switch engine(config, payloads);
  SwitchOutput out;
  Instant now{1s};
  for (unsigned i = 0; i < wire::times::kHellosMissed; ++i) {
    engine.on_timer(now, out);
    EXPECT_TRUE(engine.is_up(PortId(0))) << i;
    now += 1min;
  }
  engine.on_timer(now, out);
  EXPECT_FALSE(engine.is_up(PortId(0)));
  EXPECT_EQ(out.emits.size(), wire::times::kHellosMissed + 1);
}

// Spine 3 has no path to leaf 2: leaf 0 does not see the cut itself.
TEST_F(LeafSpine, FlowsAvoidASpineWithoutARoute) {
  cut(kSpine, 2);
  EXPECT_TRUE(is_up(0, kSpine));
  EXPECT_EQ(arrive(0, 4), kFlows);
  EXPECT_EQ(arrive(0, 2), kFlows);
  const auto before = net_.count(Counter::kUnicastForwarded, kSpine);
  EXPECT_GT(before, 0u) << "flows to leaf 1 still take both";
  EXPECT_EQ(net_.count(Counter::kDropNoRoute, kSpine), 0u);
  cut(kOtherSpine, 2);
  EXPECT_EQ(arrive(0, 4), 0u);
  EXPECT_EQ(net_.count(Counter::kDropNoRoute, 0), kFlows) << "dropped where it enters";
  silent_.clear();
  net_.set_port(kSpine, net_.port_between(kSpine, 2), true);
  net_.set_port(2, net_.port_between(2, kSpine), true);
  EXPECT_EQ(arrive(0, 4), kFlows);
}

// The list of unreachable switches has any length.
TEST(Trunks, ListMoreSwitchesThanOneDatagramHolds) {
  TestNetwork net;
  constexpr std::size_t kLeaves = wire::Hello::kMaxSwitches + 20;
  for (std::size_t s = 0; s < 3 + kLeaves; ++s) net.config(net.add_switch()).hello = kHello;
  net.add_host(0);
  net.link(0, 1);
  net.link(1, 2);  // all others are behind switch 2
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) {
    net.add_host(3 + leaf);
    net.link(2, 3 + leaf);
  }
  net.start();
  net.set_port(1, net.port_between(1, 2), false);
  for (const std::size_t to : {std::size_t{1}, kLeaves}) {
    auto h = net.headers_from(0, wire::Opcode::kRcSendOnly, 0);
    h.ip.destination = TestNetwork::ip(to);
    net.inject(0, net.make_frame(0, h, 8));
  }
  EXPECT_EQ(net.count(Counter::kDropNoRoute, 0), 2u);
}

class GroupOverSpines : public LeafSpine {
 protected:
  void set_up(std::uint16_t epoch) {
    net_.epoch = epoch;
    net_.set_up_group(0, epoch);
    net_.clear();
  }
  // The spine that serves the group.
  std::size_t spine() { return net_.sw(kSpine).group_count() > 0 ? kSpine : kOtherSpine; }
};

TEST_F(GroupOverSpines, EndsWhenASwitchLosesItsPathAndComesBackByAnother) {
  set_up(1);
  const std::size_t first = spine();
  net_.data(0, 0);
  EXPECT_THAT(net_.inbox(4), Contains("data 0"));
  cut(first, 2);
  EXPECT_THAT(net_.inbox(0), Contains("reject e1 a trunk on the way is down 10.0.0.5"));
  net_.control(0, wire::MrpType::kQuery, 1);
  EXPECT_THAT(net_.inbox(0), Contains("reject e1 a trunk on the way is down 10.0.0.5"))
      << "the first word may be lost";
  net_.control(0, wire::MrpType::kUnregister, 1);
  net_.advance(10s);  // tables beyond the cut are orphans, tombstones rest
  for (std::size_t s = 0; s < 5; ++s) EXPECT_EQ(net_.sw(s).group_count(), 0u) << s;
  set_up(2);
  net_.data(0, 0);
  for (const std::size_t host : {1, 2, 3, 4, 5}) {
    EXPECT_THAT(net_.inbox(host), Contains("data 0")) << host;
  }
}

TEST_F(GroupOverSpines, IsRefusedAtOnceIfTheTrunkGoesWhileItIsSetUp) {
  net_.register_group(0, 1);
  net_.clear();
  const std::size_t first = spine();
  cut(0, first);
  EXPECT_THAT(net_.inbox(0), Contains(HasSubstr("reject e1 a trunk on the way is down")));
}

TEST_F(GroupOverSpines, IsLostByASilentTrunk) {
  set_up(1);
  silence(0, spine());
  net_.advance(kSilence + kHello);
  EXPECT_THAT(net_.inbox(0), Contains(HasSubstr("reject e1 a trunk on the way is down")));
}

TEST_F(GroupOverSpines, IsNotTouchedByOtherTrunks) {
  set_up(1);
  const std::size_t other = spine() == kSpine ? kOtherSpine : kSpine;
  cut(0, other);
  cut(2, other);
  EXPECT_THAT(net_.inbox(0), IsEmpty());
  net_.data(0, 0);
  EXPECT_THAT(net_.inbox(4), Contains("data 0"));
}

// Beyond the cut the leader can't be reached: the tables there age, and the members are informed.
TEST_F(GroupOverSpines, LeavesNothingBeyondTheCut) {
  set_up(1);
  cut(0, spine());
  net_.advance(net_.config(0).orphan_age + kHello);
  for (const std::size_t s : {kSpine, kOtherSpine, std::size_t{1}, std::size_t{2}}) {
    EXPECT_EQ(net_.sw(s).group_count(), 0u) << s;
  }
  for (const std::size_t host : {2, 3, 4, 5}) {
    EXPECT_THAT(net_.inbox(host), Contains("unregister e1")) << host;
  }
}

// To leaf 0, from any source.
std::vector<std::uint8_t> hello_bytes(TestNetwork& net, wire::Ipv4 from, const wire::Hello& hello) {
  std::array<std::uint8_t, 64> bytes;
  wire::UdpDatagram datagram;
  datagram.ip.source = from;
  datagram.ip.destination = net.config(0).address;
  datagram.udp.source_port = datagram.udp.destination_port = wire::kDefaultMrpUdpPort;
  Frame frame;
  datagram.emit(frame, std::span(bytes).first(hello.emit(bytes)));
  std::vector<std::uint8_t> raw(frame.size());
  frame.to_bytes(raw);
  return raw;
}

TEST_F(LeafSpine, HellosAreAcceptedFromTheFarEndOnly) {
  // A host sends a HELLO that claims that its switch receives none.
  net_.inject_at(0, net_.port_of(0), hello_bytes(net_, TestNetwork::ip(0), {}));
  EXPECT_EQ(net_.count(Counter::kDropMrpForged), 1u);
  // Another switch's HELLO, returned in a loop.
  const auto malformed = net_.count(Counter::kDropMalformed);
  net_.inject_at(0, net_.port_between(0, kSpine), hello_bytes(net_, net_.config(1).address, {}));
  EXPECT_EQ(net_.count(Counter::kDropMalformed), malformed + 1);
  EXPECT_TRUE(is_up(0, kSpine));
}

// An overtaken list would make two switches disagree: a new group's branches to one leaf then come
// over two spines, and it is refused.
TEST_F(LeafSpine, AnOvertakenListIsIgnored) {
  cut(kSpine, 2);
  const auto send_empty_list = [this](std::uint32_t stamp) {
    wire::Hello hello;
    hello.receives = true;
    hello.stamp = stamp;
    net_.inject_at(0, net_.port_between(0, kSpine),
                   hello_bytes(net_, net_.config(kSpine).address, hello));
  };
  const std::chrono::microseconds cut_at(net_.now().time_since_epoch() / 1us);
  send_empty_list(static_cast<std::uint32_t>(cut_at.count() - 1));
  EXPECT_EQ(arrive(0, 4), kFlows);
  send_empty_list(3'000'000'000);  // restarted, on a machine that has run for longer
  EXPECT_LT(arrive(0, 4), kFlows);
}

}  // namespace
}  // namespace cepheus::fabric
