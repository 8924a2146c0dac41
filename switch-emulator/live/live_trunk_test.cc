// Trunks of a live fabric, cut, impaired and repaired on its control socket.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_fabric.h"

namespace cepheus::live {
namespace {

using fabric::HostPort;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t kFlows = 16;

// h0 on s0, sixteen hosts on s1, and two trunks between the switches.
net::Topology two_trunks(wire::Duration hello = {}) {
  std::string text = R"(
    [[switch]]
    name = "s0"
    [[switch]]
    name = "s1"
    [[trunk]]
    between = ["s0", "s1"]
    [[trunk]]
    between = ["s0", "s1"]
    [[host]]
    name = "h0"
    address = "10.0.0.1"
    switch = "s0"
  )";
  for (std::uint64_t i = 1; i <= kFlows; ++i) {
    const std::string number = std::to_string(i);
    text += "[[host]]\nname = \"h" + number + "\"\naddress = \"10.0.1." + number +
            "\"\nswitch = \"s1\"\n";
  }
  net::Topology topology = *net::Topology::from_toml(text);
  topology.hello = hello;
  return topology;
}

// Fates of the frames that hosts sent.
struct Fates {
  std::uint64_t delivered = 0, lost = 0;
};
Fates fates(const FabricStatus& status) {
  Fates sum;
  for (const SwitchStatus& one : status.switches) {
    sum.lost += counter(one, "drop_no_route");
    for (const PortStatus& port : one.ports) {
      if (port.kind == net::PortKind::kHost) sum.delivered += port.tx.frames;
      sum.lost += port.out.dropped_loss + port.out.dropped_down;
    }
  }
  return sum;
}

class Trunks : public testing::Test {
 protected:
  // Without HELLOs the frames on trunks are only the tests' own.
  explicit Trunks(wire::Duration hello = {}) : fabric_(two_trunks(hello)) {
    for (std::uint64_t i = 1; i <= kFlows; ++i)
      others_.push_back(fabric_.attach("h" + std::to_string(i)));
  }
  // Requests a change; returns the error, or "".
  std::string set(json request) {
    request["ask"] = "link";
    const auto answer = send_request(fabric_.socket(), request);
    return answer ? "" : answer.error().text;
  }
  // The number of packets that arrive: h0 sends one to each other host, or each of them to h0.
  std::uint64_t arrive_from_s0() {
    return arrive([this](HostPort& other) {
      send_packet(*h0_, {.to = other.identity().address, .payload_bytes = 8});
    });
  }
  std::uint64_t arrive_from_s1() {
    return arrive([this](HostPort& other) {
      send_packet(other, {.to = h0_->identity().address, .payload_bytes = 8});
    });
  }
  PortStatus trunk(std::size_t of_switch, const std::string& name) {
    const FabricStatus status = fabric_.status();
    for (const PortStatus& port : status.switches[of_switch].ports) {
      if (port.name == name) return port;
    }
    ADD_FAILURE() << "no port " << name;
    return {};
  }

  TestFabric fabric_;
  std::unique_ptr<HostPort> h0_ = fabric_.attach("h0");
  std::vector<std::unique_ptr<HostPort>> others_;

 private:
  template <typename Send>
  std::uint64_t arrive(Send send) {
    const Fates before = fates(fabric_.status());
    for (const auto& other : others_) send(*other);
    const Fates after = fates(fabric_.status_when([&](const FabricStatus& status) {
      const Fates now = fates(status);
      const std::uint64_t delivered = now.delivered - before.delivered;
      return delivered == kFlows || delivered + now.lost - before.lost == kFlows;
    }));
    return after.delivered - before.delivered;
  }
};

TEST_F(Trunks, ShareTheFlows) {
  EXPECT_EQ(arrive_from_s0(), kFlows);
  EXPECT_EQ(arrive_from_s1(), kFlows);
  for (const PortStatus& port :
       {trunk(0, "s1"), trunk(0, "s1#2"), trunk(1, "s0"), trunk(1, "s0#2")}) {
    EXPECT_GT(port.tx.frames, 0u) << port.name;
  }
}

TEST_F(Trunks, ThatAreCutCarryNothingAndBothSwitchesSendByTheOthers) {
  ASSERT_EQ(set({{"link", "s0-s1"}, {"up", false}}), "");
  EXPECT_EQ(arrive_from_s0(), kFlows);
  EXPECT_EQ(arrive_from_s1(), kFlows);
  for (const PortStatus& cut : {trunk(0, "s1"), trunk(1, "s0")}) {
    EXPECT_FALSE(cut.in_up || cut.out_up);
    EXPECT_EQ(cut.tx.frames + cut.rx.frames, 0u);
  }
  const std::string text = to_text(fabric_.status(), View::kPorts, false);
  EXPECT_THAT(text, AllOf(HasSubstr("s1    -         cut  "), HasSubstr("s1#2  -         trunk")));
}

// As with a cable with one broken fibre: neither end sends into it.
TEST_F(Trunks, ThatAreCutOneWayAreDownForBothEnds) {
  ASSERT_EQ(set({{"link", "s0-s1"}, {"direction", "to-s1"}, {"up", false}}), "");
  EXPECT_TRUE(trunk(0, "s1").in_up);
  EXPECT_FALSE(trunk(0, "s1").out_up);
  EXPECT_EQ(arrive_from_s0(), kFlows);
  EXPECT_EQ(arrive_from_s1(), kFlows);
  EXPECT_EQ(trunk(1, "s0").tx.frames, 0u);
  ASSERT_EQ(set({{"link", "s0-s1"}, {"up", true}}), "");
  EXPECT_EQ(arrive_from_s1(), kFlows);
  EXPECT_GT(trunk(1, "s0").tx.frames, 0u);
}

TEST_F(Trunks, LoseFramesInTheRequestedDirection) {
  ASSERT_EQ(set({{"link", "s1-s0#2"}, {"direction", "to-s1"}, {"loss", 1}}), "");
  EXPECT_LT(arrive_from_s0(), kFlows);
  EXPECT_EQ(arrive_from_s1(), kFlows);
  const PortStatus lossy = trunk(0, "s1#2");
  EXPECT_EQ(lossy.out.dropped_loss, lossy.tx.frames);
  EXPECT_EQ(lossy.in.dropped_loss, 0u);
}

class TrunksWithHellos : public Trunks {
 protected:
  TrunksWithHellos() : Trunks(std::chrono::milliseconds(5)) {}
};

TEST_F(TrunksWithHellos, ThatAreSilentAreDarkUntilHellosArriveAgain) {
  ASSERT_EQ(set({{"link", "s0-s1"}, {"direction", "to-s1"}, {"loss", 1}}), "");
  const auto are_dark = [](bool dark) {
    return [dark](const FabricStatus& status) {
      const auto& ports = status.switches[0].ports;
      const auto& others = status.switches[1].ports;
      return ports[1].dark == dark && others[kFlows].dark == dark;
    };
  };
  const FabricStatus status = fabric_.status_when(are_dark(true));
  EXPECT_THAT(to_text(status, View::kPorts, false),
              AllOf(HasSubstr("s1    -         dark "), HasSubstr("s1#2  -         trunk")));
  EXPECT_EQ(counter(status.switches[0], "trunk_dark"), 1u);
  EXPECT_EQ(arrive_from_s0(), kFlows);
  EXPECT_EQ(arrive_from_s1(), kFlows);
  ASSERT_EQ(set({{"link", "s0-s1"}, {"loss", 0}}), "");
  EXPECT_TRUE(are_dark(false)(fabric_.status_when(are_dark(false))));
}

TEST_F(Trunks, ThatAreMisspeltAreAnsweredWithTheKnownNames) {
  EXPECT_THAT(set({{"link", "s0"}, {"up", false}}),
              HasSubstr("'s0' is a switch: its trunks are s0-s1, s0-s1#2"));
  EXPECT_THAT(set({{"link", "s0-s1#3"}, {"up", false}}),
              HasSubstr("no link 's0-s1#3' in the fabric (did you mean 's0-s1#2'?)"));
  EXPECT_THAT(set({{"link", "h99"}, {"up", false}}), HasSubstr("did you mean 'h9'?"));
  EXPECT_THAT(set({{"link", "s0-s1"}, {"direction", "up"}}),
              HasSubstr("direction must be both, to-s0 or to-s1"));
  EXPECT_THAT(set({{"link", "h0"}, {"direction", "left"}}),
              HasSubstr("direction must be down, up, both, to-h0 or to-s0"));
}

// A name made of two names can be ambiguous.
TEST(TrunkNames, ThatFitTwoTrunksMustComeFromTheOtherEnd) {
  TestFabric fabric(*net::Topology::from_toml(R"(
    [[switch]]
    name = "a"
    [[switch]]
    name = "a-b"
    [[switch]]
    name = "b-c"
    [[switch]]
    name = "c"
    [[host]]
    name = "h0"
    address = "10.0.0.1"
    switch = "a"
    [[trunk]]
    between = ["a", "b-c"]
    [[trunk]]
    between = ["a-b", "c"]
    [[trunk]]
    between = ["a", "a-b"]
  )"));
  const auto both =
      send_request(fabric.socket(), {{"ask", "link"}, {"link", "a-b-c"}, {"up", false}});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().text, HasSubstr("between a and b-c, and that between a-b and c"));
  EXPECT_TRUE(send_request(fabric.socket(), {{"ask", "link"}, {"link", "c-a-b"}, {"up", false}}));
}

}  // namespace
}  // namespace cepheus::live
