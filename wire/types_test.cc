#include "wire/types.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace cepheus::wire {
namespace {

constexpr std::int32_t kHalf = 1 << 23;

Psn any_psn() { return Psn(*rc::gen::arbitrary<std::uint32_t>()); }

RC_GTEST_PROP(Psn, MeasuresAddedSteps, ()) {
  const Psn start = any_psn();
  const std::int32_t steps = *rc::gen::inRange(-kHalf, kHalf);
  RC_ASSERT(distance(start, start + steps) == steps);
  RC_ASSERT(start + steps - steps == start);
}

RC_GTEST_PROP(Psn, OrdersTwoNumbersInOneWayOnly, ()) {
  const Psn a = any_psn();
  const Psn b = a + *rc::gen::inRange(-kHalf + 1, kHalf);  // antipodes have no order
  RC_ASSERT(after(a, b) == before(b, a));
  RC_ASSERT(after(a, b) + before(a, b) + (a == b) == 1);
}

RC_GTEST_PROP(Psn, AddsInAnyGrouping, (std::int32_t m, std::int32_t n)) {
  const Psn a = any_psn();
  RC_ASSERT(a + m + n == a + (std::int64_t{m} + n));
}

TEST(Psn, WrapsAt24Bits) {
  EXPECT_EQ(Psn(0x1000000), Psn(0));
  EXPECT_EQ(Psn(0xFFFFFF) + 1, Psn(0));
  EXPECT_TRUE(after(Psn(0), Psn(0xFFFFFF)));
  EXPECT_EQ(distance(Psn(0), Psn(0x800000)), -kHalf);
}

RC_GTEST_PROP(Ipv4, IsReadFromItsText, (std::uint32_t value)) {
  RC_ASSERT(Ipv4::parse(Ipv4(value).to_string()) == Ipv4(value));
}

TEST(Ipv4, IsWrittenDotted) {
  EXPECT_EQ(Ipv4(198, 18, 0, 255).to_string(), "198.18.0.255");
  EXPECT_EQ(Ipv4(198, 18, 0, 255).value(), 0xC61200FFu);
}

TEST(Ipv4, RefusesTextThatIsNoAddress) {
  for (const char* text : {"", "1", "1.2.3", "1.2.3.", "1.2.3.4.", "1.2.3.4.5", ".1.2.3", "1..2.3",
                           "256.1.1.1", "1.2.3.4 ", " 1.2.3.4", "-1.2.3.4", "+1.2.3.4", "01.2.3.4",
                           "1.2.3.0x4", "99999999999.1.1.1", "1,2,3,4"}) {
    EXPECT_FALSE(Ipv4::parse(text)) << text;
  }
  EXPECT_FALSE(Ipv4::parse(std::string_view("1.2.3.4\0", 8)));
}

TEST(Ipv4Prefix, ContainsItsBlockAndNothingElse) {
  const auto pool = Ipv4Prefix::parse("198.18.0.0/15");
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->base, kDefaultMcstPool.base);
  EXPECT_EQ(pool->length, kDefaultMcstPool.length);
  EXPECT_EQ(pool->size(), 131072u);
  EXPECT_TRUE(pool->contains(Ipv4(198, 18, 0, 0)));
  EXPECT_TRUE(pool->contains(Ipv4(198, 19, 255, 255)));
  EXPECT_FALSE(pool->contains(Ipv4(198, 17, 255, 255)));
  EXPECT_FALSE(pool->contains(Ipv4(198, 20, 0, 0)));
}

TEST(Ipv4Prefix, SpansEverythingAtLengthZeroAndOneAddressAt32) {
  const auto all = Ipv4Prefix::parse("0.0.0.0/0");
  const auto one = Ipv4Prefix::parse("10.0.0.1/32");
  ASSERT_TRUE(all && one);
  EXPECT_EQ(all->size(), std::uint64_t{1} << 32);
  EXPECT_TRUE(all->contains(Ipv4(0xFFFFFFFF)));
  EXPECT_EQ(one->size(), 1u);
  EXPECT_FALSE(one->contains(Ipv4(10, 0, 0, 2)));
}

TEST(Ipv4Prefix, RefusesBadLengthsAndHostBits) {
  for (const char* text : {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08",
                           "10.0.0.0/8x", "/8", "10.0.0/8", "10.0.0.1/8"}) {
    EXPECT_FALSE(Ipv4Prefix::parse(text)) << text;
  }
}

TEST(Mac, IsWrittenWithColons) {
  EXPECT_EQ((Mac{{0x02, 0xCE, 0x0A, 0x00, 0x00, 0xFF}}).to_string(), "02:ce:0a:00:00:ff");
}

TEST(BitRate, ComputesTheTimeOfBytes) {
  EXPECT_EQ(BitRate{100'000'000'000}.time_for(4096), std::chrono::nanoseconds(327));
  EXPECT_EQ(BitRate{}.time_for(4096), std::chrono::nanoseconds(0));
  EXPECT_EQ(BitRate{8'000'000'000}.time_for(1'000'000'000'000), std::chrono::seconds(1000));
}

TEST(PathMtu, IsOneOfFive) {
  int count = 0;
  for (std::uint32_t n = 0; n <= 8192; ++n) count += is_path_mtu(n) ? 1 : 0;
  EXPECT_EQ(count, 5);
  EXPECT_TRUE(is_path_mtu(256) && is_path_mtu(4096));
}

}  // namespace
}  // namespace cepheus::wire
