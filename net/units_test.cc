#include "net/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace cepheus::net {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(Units, ReadWholeAndFractionalQuantities) {
  EXPECT_EQ(parse_rate("10Gbps")->bits_per_second, 10'000'000'000u);
  EXPECT_EQ(parse_rate("2.5 Gbps")->bits_per_second, 2'500'000'000u);
  EXPECT_EQ(parse_rate("100Mbps")->bits_per_second, 100'000'000u);
  EXPECT_EQ(parse_duration("2us"), microseconds(2));
  EXPECT_EQ(parse_duration("1.25us"), nanoseconds(1250));
  EXPECT_EQ(parse_duration("0ns"), nanoseconds(0));
  EXPECT_EQ(parse_bytes("4MiB"), 4u << 20);
  EXPECT_EQ(parse_bytes("1500B"), 1500u);
}

TEST(Units, TakeUnlimitedAsARateButNotZero) {
  EXPECT_TRUE(parse_rate("unlimited")->is_unlimited());
  EXPECT_FALSE(parse_rate("0Gbps"));
}

TEST(Units, RefuseOtherTexts) {
  for (const char* text : {"", "10", "Gbps", "10gbps", "-1Gbps", "1.Gbps", ".5Gbps", "1.2.3Gbps",
                           "10Gbps ", "1e9bps", "99999999999999999999bps", "9999999999Tbps"}) {
    EXPECT_FALSE(parse_rate(text)) << text;
  }
}

TEST(Units, RefuseDurationsAndSizesWithWrappingSums) {
  EXPECT_EQ(parse_duration("525600min"), kLongestDuration);
  EXPECT_FALSE(parse_duration("525601min"));
  EXPECT_EQ(parse_bytes("1024GiB"), kLargestSize);
  EXPECT_FALSE(parse_bytes("1025GiB"));
}

TEST(Units, RefuseFractionsOfTheSmallestUnit) {
  EXPECT_FALSE(parse_duration("1.5ns"));
  EXPECT_FALSE(parse_duration("1.2345us"));
  EXPECT_EQ(parse_duration("1.50000us"), nanoseconds(1500));
}

TEST(Units, PrintTheLargestUnitThatKeepsTheValueWhole) {
  EXPECT_EQ(to_text(wire::BitRate{2'500'000'000}), "2500Mbps");
  EXPECT_EQ(to_text(wire::BitRate{}), "unlimited");
  EXPECT_EQ(to_text(wire::Duration(0)), "0ns");
  EXPECT_EQ(to_text(wire::Duration(microseconds(100))), "100us");
  EXPECT_EQ(bytes_to_text(4 << 20), "4MiB");
  EXPECT_EQ(bytes_to_text(1500), "1500B");
  EXPECT_EQ(number_to_text(0), "0.0");
  EXPECT_EQ(number_to_text(0.01), "0.01");
}

RC_GTEST_PROP(Units, ReadBackWhatTheyPrint, ()) {
  const auto value = *rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
  const auto scale = *rc::gen::element<std::int64_t>(1, 1000, 1024, 1'000'000, 1'000'000'000);
  const std::int64_t n = value / scale * scale;
  RC_ASSERT(parse_rate(to_text(wire::BitRate{static_cast<std::uint64_t>(n)}))->bits_per_second ==
            static_cast<std::uint64_t>(n));
  const wire::Duration duration(n % (kLongestDuration.count() + 1));
  RC_ASSERT(*parse_duration(to_text(duration)) == duration);
  const wire::Bytes bytes = static_cast<wire::Bytes>(n) % (kLargestSize + 1);
  RC_ASSERT(*parse_bytes(bytes_to_text(bytes)) == bytes);
}

}  // namespace
}  // namespace cepheus::net
