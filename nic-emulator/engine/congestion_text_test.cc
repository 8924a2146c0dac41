#include "nic-emulator/engine/congestion_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cepheus::rnic {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using wire::BitRate;

constexpr BitRate kFortyGigabits{40'000'000'000};

std::string error_of(std::string_view text) {
  const auto parsed = parse_congestion(text, kFortyGigabits);
  return parsed ? "" : parsed.error().text;
}

TEST(CongestionText, OffHasNoConfiguration) {
  for (const char* text : {"", "off"}) {
    const auto parsed = parse_congestion(text, kFortyGigabits);
    ASSERT_TRUE(parsed);
    EXPECT_FALSE(*parsed);
  }
}

TEST(CongestionText, NamesAParameterSetAndHowMarksAreAnswered) {
  const CongestionConfig orig = **parse_congestion("orig", kFortyGigabits);
  EXPECT_EQ(orig.link.bits_per_second, kFortyGigabits.bits_per_second);
  EXPECT_EQ(orig.notification, Notification::kCnp);
  EXPECT_EQ(orig.reaction.rate_timer, 55us);
  const CongestionConfig hpcc = **parse_congestion("hpcc,ce-echo", kFortyGigabits);
  EXPECT_EQ(hpcc.notification, Notification::kCeEcho);
  EXPECT_EQ(hpcc.reaction.rate_timer, 300us);
  EXPECT_EQ(hpcc.reaction.additive_bps, 8'000'000u) << "of the link's rate";
}

// Otherwise a burst of marked packets would cut the rate to its minimum.
TEST(CongestionText, WithEchoedMarksTheSenderLimitsItsCuts) {
  EXPECT_EQ((*parse_congestion("orig", kFortyGigabits))->reaction.cut_interval, 0us);
  EXPECT_EQ((*parse_congestion("orig,ce-echo", kFortyGigabits))->reaction.cut_interval, 50us);
  EXPECT_EQ(
      (*parse_congestion("orig,ce-echo,cut_interval_us=7", kFortyGigabits))->reaction.cut_interval,
      7us);
}

TEST(CongestionText, SetsEveryParameter) {
  const CongestionConfig c = **parse_congestion(
      "orig,g=0.5,alpha_timer_us=1.5,rate_timer_us=2,byte_counter=65536,"
      "fast_recovery=3,additive_mbps=7,hyper_mbps=8,hyper_grows=0,min_mbps=9,"
      "cut_interval_us=10,always_clamps=0,cnp_interval_us=11,link_mbps=2500",
      kFortyGigabits);
  EXPECT_EQ(c.reaction.g, 0.5);
  EXPECT_EQ(c.reaction.alpha_timer, 1500ns);
  EXPECT_EQ(c.reaction.rate_timer, 2us);
  EXPECT_EQ(c.reaction.byte_counter, 65536u);
  EXPECT_EQ(c.reaction.fast_recovery, 3u);
  EXPECT_EQ(c.reaction.additive_bps, 7'000'000u);
  EXPECT_EQ(c.reaction.hyper_bps, 8'000'000u);
  EXPECT_FALSE(c.reaction.hyper_grows);
  EXPECT_EQ(c.reaction.min_bps, 9'000'000u);
  EXPECT_EQ(c.reaction.cut_interval, 10us);
  EXPECT_FALSE(c.reaction.always_clamps);
  EXPECT_EQ(c.cnp_interval, 11us);
  EXPECT_EQ(c.link.bits_per_second, 2'500'000'000u);
}

TEST(CongestionText, AnUnlimitedLinkCountsAsOneOfHundredGigabits) {
  EXPECT_EQ((*parse_congestion("orig", BitRate{}))->link.bits_per_second, 100'000'000'000u);
  const auto slow = parse_congestion("hpcc,link_mbps=25000", BitRate{});
  EXPECT_EQ((*slow)->reaction.additive_bps, 5'000'000u);
}

TEST(CongestionText, AnErrorNamesTheWordAndThePossibleOnes) {
  EXPECT_THAT(error_of("on"), AllOf(HasSubstr("'on'"), HasSubstr("begin with off, orig or hpcc")));
  EXPECT_THAT(error_of("orig,echo"), AllOf(HasSubstr("'echo'"), HasSubstr("ce-echo")));
  EXPECT_THAT(error_of("orig,gg=1"), AllOf(HasSubstr("'gg=1'"), HasSubstr("cnp_interval_us")));
  EXPECT_THAT(error_of("orig,g"), HasSubstr("'g'"));
  for (const char* text : {"orig,g=", "orig,g=x", "orig,min_mbps=10Mbps", "orig,g=-1", "orig,g=nan",
                           "orig,min_mbps=1e13"}) {
    EXPECT_THAT(error_of(text), HasSubstr("needs a number")) << text;
  }
  EXPECT_THAT(error_of("orig,g=2"), HasSubstr("g must"));
  EXPECT_THAT(error_of("orig,link_mbps=0"), HasSubstr("link's rate"));
  EXPECT_THAT(error_of("orig,"), HasSubstr("''"));
}

}  // namespace
}  // namespace cepheus::rnic
