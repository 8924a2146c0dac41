// A topology file's settings of the queues before links.
#include "net/queue_settings.h"

#include <gmock/gmock.h>

#include "net/buffer_plan.h"
#include "net/topology.h"

namespace cepheus::net {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kHost = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1\"\n";

wire::Result<Topology> read_link(const std::string& link) {
  return Topology::from_toml(kHost + ("link = { " + link + " }\n"), "net.toml");
}

TEST(QueueSettings, AreOffByDefault) {
  EXPECT_FALSE(read_link("rate = \"10Gbps\"")->hosts[0].down.ecn.on);
  EXPECT_FALSE(read_link("rate = \"10Gbps\", ecn = false")->hosts[0].down.ecn.on);
  EXPECT_TRUE(read_link("rate = \"10Gbps\", ecn = true")->hosts[0].down.ecn.on);
}

TEST(QueueSettings, ALinkOverridesTheDefault) {
  const auto t = Topology::from_toml(std::string("[link]\nrate = \"10Gbps\"\necn = true\n") +
                                     kHost + "link = { ecn = { kmax = \"1MB\" } }\n" +
                                     "[[host]]\nname = \"b\"\naddress = \"10.0.0.2\"\n" +
                                     "link = { ecn = false }\n");
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_EQ(t->hosts[0].down.ecn.kmax, 1'000'000u);
  EXPECT_FALSE(t->hosts[1].down.ecn.on);
}

TEST(QueueSettings, AreRefusedWithTheLineAndTheWrongPart) {
  struct Mistake {
    const char* link;
    int line;
    const char* names;
  };
  for (const Mistake& mistake :
       {Mistake{"ecn = true", 1, "rate = \"10Gbps\""},
        {"rate = \"1Gbps\", ecn = 3", 4, "ecn = 3"},
        {"rate = \"1Gbps\", ecn = { min = \"5KB\" }", 4, "'kmin'?"},
        {"rate = \"1Gbps\", ecn = { kmin = 5 }", 4, "kmin = 5"},
        {"rate = \"1Gbps\", ecn = { kmax = \"0B\" }", 4, "kmax = \"500KB\""},
        {"rate = \"1Gbps\", ecn = { pmax = 3 }", 4, "pmax = 3"},
        {"rate = \"1Gbps\", ecn = { kmin = \"9KB\", kmax = \"5KB\" }", 1, "kmin = \"9KB\""},
        {"rate = \"100Gbps\", queue = \"300KB\", ecn = true", 1, "queue = \"1MB\""},
        {"pfc = true", 1, "pfc = false"},
        {"rate = \"1Gbps\", pfc = { headroom = 7 }", 4, "headroom = 7"}}) {
    const auto t = read_link(mistake.link);
    ASSERT_FALSE(t) << mistake.link;
    EXPECT_THAT(t.error().text, AllOf(StartsWith("net.toml:" + std::to_string(mistake.line) + ": "),
                                      HasSubstr(mistake.names)));
  }
}

std::string switch_with(const std::string& settings) {
  return "[[switch]]\nname = \"s0\"\n" + settings + kHost +
         "link = { rate = \"100Gbps\", delay = \"1us\", pfc = true }\n";
}

TEST(QueueSettings, ABufferIsTheSwitchsOwnOrByItsFastestLink) {
  const auto plan_of = [](const std::string& settings) {
    const auto t = Topology::from_toml(switch_with(settings), "net.toml");
    EXPECT_TRUE(t) << t.error().text;
    return t ? buffer_plans(*t).at(0) : BufferPlan();
  };
  EXPECT_EQ(plan_of("").config.bytes, 32u << 20);
  const BufferPlan own =
      plan_of("buffer = \"1MB\"\nbuffer_share = 0.5\nbuffer_reserve = \"9KB\"\n");
  EXPECT_EQ(own.config.bytes, 1'000'000u);
  EXPECT_EQ(own.config.share, 0.5);
  EXPECT_EQ(own.config.reserve, 9'000u);
  EXPECT_EQ(own.headroom, (std::vector<wire::Bytes>{37'773}));  // as in pfc_test.cc
}

TEST(QueueSettings, ABufferHoldsItsHeadroom) {
  const auto t = Topology::from_toml(switch_with("buffer = \"100KB\"\n"), "net.toml");
  ASSERT_FALSE(t);
  EXPECT_THAT(t.error().text, HasSubstr("buffer = \"218906B\""));
  const auto none = Topology::from_toml(switch_with("buffer_share = 0.0\n"), "net.toml");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("buffer_share = 0.125"));
}

TEST(QueueSettings, GroupsAreHaltedIfTheSwitchIsConfiguredSo) {
  const auto t = Topology::from_toml(switch_with("group_halt = true\n"), "net.toml");
  ASSERT_TRUE(t) << t.error().text;
  EXPECT_TRUE(t->switches.at(0).config.buffer.group_halt);
  const auto again = Topology::from_toml(t->to_toml(), "again.toml");
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_TRUE(again->switches.at(0).config.buffer.group_halt);
  const auto usual = Topology::from_toml(switch_with(""), "net.toml");
  ASSERT_TRUE(usual);
  EXPECT_FALSE(usual->switches.at(0).config.buffer.group_halt);
}

TEST(QueueSettings, GroupHaltIsASwitchAndNeedsLosslessLinks) {
  const auto word = Topology::from_toml(switch_with("group_halt = \"on\"\n"), "net.toml");
  ASSERT_FALSE(word);
  EXPECT_THAT(word.error().text, StartsWith("net.toml:3: group_halt"));
  Topology lossy = Topology::star(2);
  lossy.switches[0].config.buffer.group_halt = true;
  const auto none = Topology::from_toml(lossy.to_toml(), "net.toml");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("pfc = true"));
}

}  // namespace
}  // namespace cepheus::net
