// A topology file's settings of the queues before links.
#include "net/queue_settings.h"

#include <gtest/gtest.h>

#include "net/buffer_plan.h"
#include "net/topology.h"

namespace cepheus::net {
namespace {

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

struct QueueMistake {
  const char* link;
  const char* error;
};

class QueueMistakes : public testing::TestWithParam<QueueMistake> {};

TEST_P(QueueMistakes, AreReportedWithTheirRemedy) {
  const auto t = read_link(GetParam().link);
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().text, GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Ecn, QueueMistakes,
    testing::Values(
        QueueMistake{
            "ecn = true",
            "net.toml:1: ecn marks frames that wait for a link's rate, and this one has none; "
            "write rate = \"10Gbps\" beside it, or ecn = false, in [[host]]"},
        QueueMistake{
            "rate = \"1Gbps\", ecn = 3",
            "net.toml:4: ecn = 3 is not a table; write ecn = { ... }, in link of [[host]]"},
        QueueMistake{"rate = \"1Gbps\", ecn = { min = \"5KB\" }",
                     "net.toml:4: unknown key 'min' in ecn of link of [[host]] (did you mean "
                     "'kmin'?); known: kmin, kmax, pmax"},
        QueueMistake{"rate = \"1Gbps\", ecn = { kmin = 5 }",
                     "net.toml:4: kmin = 5 has no unit; write kmin = \"4MiB\" (units: B, KB, MB, "
                     "GB, KiB, MiB, GiB; at most 1024GiB), in ecn of link of [[host]]"},
        QueueMistake{
            "rate = \"1Gbps\", ecn = { kmax = \"0B\" }",
            "net.toml:4: kmax is 0; write kmax = \"500KB\", or leave it out, in ecn of link "
            "of [[host]]"},
        QueueMistake{
            "rate = \"1Gbps\", ecn = { pmax = 3 }",
            "net.toml:4: pmax = 3 is not a probability; write a number from 0.0 to 1.0, in "
            "ecn of link of [[host]]"},
        QueueMistake{"rate = \"1Gbps\", ecn = { kmin = \"9KB\", kmax = \"5KB\" }",
                     "net.toml:1: ecn: kmin = \"9KB\" is above kmax = \"5KB\"; write the smaller "
                     "one as kmin, in [[host]]"},
        QueueMistake{"rate = \"100Gbps\", queue = \"300KB\", ecn = true",
                     "net.toml:1: ecn: the queue is full before it marks everything, which it does "
                     "from kmax = \"500KB\"; write a smaller kmax, or queue = \"1MB\", in "
                     "[[host]]"}));

INSTANTIATE_TEST_SUITE_P(
    Pfc, QueueMistakes,
    testing::Values(
        QueueMistake{
            "pfc = true",
            "net.toml:1: pfc pauses frames that wait for a link's rate, and this one has none; "
            "write rate = \"10Gbps\" beside it, or pfc = false, in [[host]]"},
        QueueMistake{"rate = \"1Gbps\", pfc = { headroom = 7 }",
                     "net.toml:4: headroom = 7 has no unit; write headroom = \"4MiB\" (units: B, "
                     "KB, MB, GB, KiB, MiB, GiB; at most 1024GiB), in pfc of link of [[host]]"}));

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
  EXPECT_EQ(t.error().text,
            "net.toml:1: buffer = \"100KB\" is less than the headroom and reserve of the lossless "
            "ports of 's0' with a few frames; write buffer = \"218906B\", or leave it out, in "
            "[[switch]]");
  const auto none = Topology::from_toml(switch_with("buffer_share = 0.0\n"), "net.toml");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text,
            "net.toml:3: buffer_share must be above 0; write buffer_share = 0.125, in [[switch]]");
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
  EXPECT_EQ(word.error().text,
            "net.toml:3: group_halt is neither true nor false; write group_halt = true, in "
            "[[switch]]");
  Topology lossy = Topology::star(2);
  lossy.switches[0].config.buffer.group_halt = true;
  const auto none = Topology::from_toml(lossy.to_toml(), "net.toml");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text.find("group_halt is for frames from lossless links, and 's0' has "
                                   "none; write pfc = true in [link], or leave group_halt out"),
            std::string::npos)
      << none.error().text;
}

}  // namespace
}  // namespace cepheus::net
